#include "data/own_parts.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.hpp"
#include "base/files/file_kind.hpp"
#include "base/files/list_folder.hpp"
#include "base/files/random_access_file.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "data/tokens/shards.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr char layouts[] =
    "a data folder holds train/CLASS/*.jpg (or .png), train*.tar or train*.h5; or text: train*.txt "
    "or train*.bin; and the same of val";
constexpr std::size_t most_named = 6;  // entries of a folder, in a message

/// One of the two parts of a folder, in one layout.
struct Part {
  OwnLayout layout;
  std::vector<fs::path> paths;

  std::string name() const { return paths.front().filename().string(); }
};

std::vector<std::string> endings_of(OwnLayout layout) {
  switch (layout) {
    case OwnLayout::tar:
      return {".tar"};
    case OwnLayout::hdf5:
      return {".h5", ".hdf5"};
    case OwnLayout::bytes:
      return {".txt"};
    case OwnLayout::shards:
      return {".bin"};
    case OwnLayout::folder:
      break;
  }
  return {};
}

/// The part that a word within the name tells: "train" of "fineweb_train_000001.bin".
std::string part_told_by(std::string const& name) {
  std::string word;
  for (char const c : name + '.') {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (word == "train" || word == "training") return "train";
    if (word == "val" || word == "valid" || word == "validation") return "val";
    word.clear();
  }
  return {};
}

std::vector<fs::path> files_of(fs::path const& root, std::string const& part, OwnLayout layout) {
  auto files = files_named(root, part, endings_of(layout));
  if (!files.empty()) return files;
  files = files_named(root, "", endings_of(layout));
  std::erase_if(files, [&part](fs::path const& file) {
    return part_told_by(file.filename().string()) != part;
  });
  return files;
}

std::vector<Part> find_layouts(fs::path const& root, std::string const& part) {
  std::vector<Part> found;
  std::error_code failed;
  if (fs::is_directory(root / part, failed)) found.push_back({OwnLayout::folder, {root / part}});
  for (auto const layout : {OwnLayout::tar, OwnLayout::hdf5, OwnLayout::bytes, OwnLayout::shards})
    if (auto files = files_of(root, part, layout); !files.empty())
      found.push_back({layout, std::move(files)});
  return found;
}

bool is_images(Part const& part) {
  return part.layout != OwnLayout::bytes && part.layout != OwnLayout::shards;
}

bool begins_as_shard(fs::path const& path) {
  return is_of_llm_c(RandomAccessFile(path));
}

/// Why a part that is not alone is none; empty if it is one.
std::string why_none(Part const& part, bool beside_images) {
  switch (part.layout) {
    case OwnLayout::folder: {
      std::error_code failed;
      for (auto const& entry : list_folder(part.paths.front()))
        if (entry.is_directory(failed)) return {};
      return "it holds no folders of classes";
    }
    case OwnLayout::bytes:
      return beside_images ? "it is taken for a list of the images" : "";
    case OwnLayout::shards:
      return std::ranges::any_of(part.paths, begins_as_shard) ? "" : "it holds no tokens of llm.c";
    default:
      return {};
  }
}

/// Without what only looks like a layout beside another one.
std::vector<Part> true_layouts(std::vector<Part> const& found, std::vector<std::string>& remarks) {
  if (found.size() < 2) return found;
  std::vector<Part> kept;
  for (auto const& part : found) {
    auto const why = why_none(part, std::ranges::any_of(kept, is_images));
    if (why.empty())
      kept.push_back(part);
    else
      remarks.push_back(str(part.paths.front().string(), " is not read: ", why));
  }
  return kept.empty() ? found : kept;
}

/// Empty if `root` has nothing of the part.
std::optional<Part> find_part(fs::path const& root, std::string const& part,
                              std::vector<std::string>& remarks) {
  auto const found = true_layouts(find_layouts(root, part), remarks);
  if (found.empty()) return std::nullopt;
  if (found.size() > 1)
    throw Error(ExitCode::bad_data,
                str(root.string(), " holds ", found[0].name(), " and ", found[1].name()),
                "only one of them can be what to read", "move one of them elsewhere");
  return found.front();
}

/// "it holds a, b, ...".
std::string content_of(fs::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : list_folder(folder))
    names.push_back(printable(entry.path().filename().string()));
  std::ranges::sort(names);
  if (names.empty()) return "it is empty";
  if (names.size() > most_named) {
    names.resize(most_named);
    names.emplace_back("...");
  }
  return "it holds " + join(names, ", ");
}

OwnParts parts_of_folder(fs::path const& root) {
  std::vector<std::string> remarks;
  auto train = find_part(root, "train", remarks);
  if (!train)
    throw Error(ExitCode::bad_data,
                str("data.path: ", root.string(), " holds no train/, train*.tar or train*.h5"),
                content_of(root), layouts);
  OwnParts parts{.layout = train->layout, .train = std::move(train->paths)};
  if (parts.is_text()) {
    parts.val = files_of(root, "val", parts.layout);
    parts.remarks = std::move(remarks);
    return parts;
  }
  auto val = find_part(root, "val", remarks);
  parts.remarks = std::move(remarks);
  if (!val) {
    if (std::error_code ignored; fs::is_directory(root / "test", ignored))
      parts.remarks.push_back(
          str((root / "test").string(), " is not read: what is to be evaluated is called val"));
    return parts;
  }
  if (val->layout != parts.layout)
    throw Error(ExitCode::bad_data,
                str(root.string(), ": ", val->name(), " is not of the kind of the training images"),
                {}, layouts);
  parts.val = std::move(val->paths);
  return parts;
}

/// What to do with a file that is no text.
char const* cure_for(FileKind const* kind) {
  using enum FileKind::Content;
  switch (kind == nullptr ? other : kind->content) {
    case tar:
      return "put it into a folder, as train.tar, if it holds images and labels as WebDataset does";
    case hdf5:
      return "put it into a folder, as train.h5, if it holds images and labels";
    case image:
      return "put images into train/CLASS/ and val/CLASS/ of a folder, and name the folder";
    case archive:
    case packed:
      return "unpack it, and name what was in it";
    case array:
      return "write its arrays as images and labels into train.h5 of a folder";
    case table:
      return "write its text into a text file, or its images into train/CLASS/ of a folder";
    case document:
      return "save it as plain text in UTF-8";
    case model:
    case pickle:
      return "a model is model.file, its weights are model.weights";
    case other:
      break;
  }
  return "name plain text, or a folder of images; tokens need the header of llm.c, which "
         "analysis/tokenize_text.py writes; iconv converts text in UTF-16";
}

/// Bytes from the whole length of a file.
std::vector<std::byte> sample_of(RandomAccessFile const& file) {
  constexpr std::int64_t windows = 16, window = 4096;
  if (file.size() <= windows * window) {
    std::vector<std::byte> all(static_cast<std::size_t>(file.size()));
    file.read(0, all);
    return all;
  }
  std::vector<std::byte> sample(windows * window);
  for (std::int64_t i = 0; i < windows; ++i)
    file.read((file.size() - window) / (windows - 1) * i,
              std::span(sample).subspan(static_cast<std::size_t>(i * window), window));
  return sample;
}

void require_text(RandomAccessFile const& file, ExitCode code) {
  auto const sample = sample_of(file);
  auto const start = std::span(sample).first(std::min(sample.size(), telling_bytes));
  auto const* const kind = kind_of(start);
  // Some books begin as some formats do.
  bool const is_document = kind != nullptr && kind->content == FileKind::Content::document;
  if (!is_document && may_be_text(sample)) return;
  throw Error(
      code,
      str(code == ExitCode::usage ? "data.path: " : "", file.path().string(), " is not plain text"),
      kind != nullptr ? str("its first bytes say that it is ", kind->name)
                      : str("its first bytes are ",
                            hex_text(start.first(std::min<std::size_t>(start.size(), 8)))),
      cure_for(kind));
}

OwnParts parts_of_file(fs::path const& path) {
  RandomAccessFile const file(path);
  if (is_of_llm_c(file)) return {.layout = OwnLayout::shards, .train = {path}};
  require_text(file, ExitCode::usage);
  return {.layout = OwnLayout::bytes, .train = {path}};
}

}  // namespace

OwnParts find_own_parts(fs::path const& path) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return parts_of_file(path);
  if (!fs::is_directory(path, failed))
    throw Error(ExitCode::bad_data,
                str("data.path: ", path.string(),
                    fs::exists(path, failed) ? " is not a folder" : " is missing"),
                failed ? failed.message() : "", layouts);
  auto parts = parts_of_folder(path);
  if (parts.layout == OwnLayout::bytes)
    for (auto const& file : parts.train) require_text(RandomAccessFile(file), ExitCode::bad_data);
  return parts;
}

}  // namespace stratagem
