#include "data/source.hpp"

#include <algorithm>

#include "base/bad_data.hpp"
#include "base/hash/sha256.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr char fetch[] = "modules/fetch-data.sh FOLDER fetches the published files";
constexpr char name_the_root[] = "let data.root or STRATAGEM_DATA name the folder that holds it; ";

/// Detects a root that is the dataset's own folder instead of its parent folder.
void refuse_own_folder(fs::path const& root, std::string const& folder) {
  std::error_code unreadable;
  auto const own = (fs::absolute(root, unreadable) / "").lexically_normal().parent_path();
  if (own.filename() != folder || fs::exists(own / folder, unreadable)) return;
  throw Error(ExitCode::bad_data, str("the data folder ", root.string(), " is that of one dataset"),
              {}, "let data.root or STRATAGEM_DATA name its parent, " + own.parent_path().string());
}

}  // namespace

Error bad_file(fs::path const& path, std::string const& problem, std::string const& expected,
               std::string const& found) {
  return bad_data(path.string(), problem, expected, found, fetch);
}

fs::path dataset_folder(std::string const& root, std::string const& folder) {
  if (root.empty())
    throw Error(ExitCode::bad_data,
                str("no folder is named for the dataset's files in ", folder, "/"),
                "data.root is empty", str(name_the_root, fetch));
  std::error_code unreadable;
  refuse_own_folder(root, folder);
  for (auto const& path : {fs::path(root), fs::path(root) / folder})
    if (!fs::is_directory(path, unreadable))
      throw Error(ExitCode::bad_data, str("the data folder ", path.string(), " is missing"),
                  unreadable ? unreadable.message() : "it is not a folder",
                  str(name_the_root, fetch));
  return fs::path(root) / folder;
}

fs::path find_file(fs::path const& folder, std::vector<std::string> const& names) {
  std::error_code unreadable;
  for (auto const& name : names)
    if (fs::exists(folder / name, unreadable)) return folder / name;
  throw Error(ExitCode::bad_data,
              str("the data file ", (folder / names.front()).string(), " is missing"),
              str("the folder holds no ", join(names, " and no ")), fetch);
}

SourceFile identify(fs::path const& path, std::span<std::byte const> content,
                    std::string_view published_sha256) {
  auto digest = sha256(content);
  bool const published = digest == published_sha256;
  return {path.string(), std::move(digest), published};
}

}  // namespace stratagem
