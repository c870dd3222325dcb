#include "base/files/list_folder.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace stratagem {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> list_folder(fs::path const& folder) {
  std::error_code failed;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (!it->path().filename().native().starts_with('.')) entries.push_back(*it);
  if (failed) throw Error(ExitCode::bad_data, "cannot list " + folder.string(), failed.message());
  return entries;
}

std::vector<fs::path> files_named(fs::path const& folder, std::string const& prefix,
                                  std::vector<std::string> const& endings) {
  std::vector<fs::path> files;
  for (auto const& entry : list_folder(folder)) {
    auto const& path = entry.path();
    if (path.filename().native().starts_with(prefix) &&
        std::ranges::find(endings, path.extension().native()) != endings.end())
      files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace stratagem
