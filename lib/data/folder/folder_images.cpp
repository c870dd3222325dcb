#include "data/folder/folder_images.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/files/list_folder.hpp"
#include "base/files/random_access_file.hpp"
#include "base/hash/hash.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "data/images/encoded_image.hpp"
#include "data/images/image_names.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

Error bad_entry(fs::path const& path, std::string const& problem, std::string const& cure) {
  return {ExitCode::bad_data, str(printable(path.string()), " ", problem), {}, cure};
}

bool is_image(fs::path const& path) {
  auto const extension = lower_case(path.extension().native());
  return !extension.empty() && is_image_extension(std::string_view(extension).substr(1));
}

/// list_folder(). Error(bad_data) also for a name that no JSON file could hold.
std::vector<fs::directory_entry> entries_of(fs::path const& folder) {
  auto entries = list_folder(folder);
  for (auto const& entry : entries)
    if (!is_portable_text(entry.path().filename().native()))
      throw bad_entry(entry.path(), "has a name that is not UTF-8", "rename it");
  return entries;
}

}  // namespace

std::vector<std::string> list_classes(fs::path const& part) {
  std::vector<std::string> classes;
  for (auto const& entry : entries_of(part)) {
    std::error_code failed;
    if (!entry.is_directory(failed))
      throw bad_entry(entry.path(), "is not a folder",
                      str("images stand in ", part.string(), "/CLASS/"));
    classes.push_back(entry.path().filename().string());
  }
  if (classes.empty())
    throw bad_entry(part, "holds no folders of classes",
                    str("put the images of each class into ", part.string(), "/CLASS/"));
  std::ranges::sort(classes);
  return classes;
}

FolderImages::FolderImages(fs::path part, std::vector<std::string> classes)
    : part_(std::move(part)), classes_(std::move(classes)) {
  for (auto const& name : list_classes(part_)) {
    auto const found = std::ranges::find(classes_, name);
    if (found == classes_.end())
      throw bad_entry(part_ / name, "is of a class that is not among those to train on",
                      str("rename it", did_you_mean(name, classes_), ", or remove it"));
    list(found - classes_.begin());
  }
  std::ranges::sort(files_, {},
                    [](File const& file) { return std::tie(file.place, file.label, file.name); });
}

void FolderImages::list(std::int64_t label) {
  auto const& name = classes_[static_cast<std::size_t>(label)];
  auto const before = files_.size();
  for (auto const& entry : entries_of(part_ / name)) {
    std::error_code failed;
    if (entry.is_directory(failed))
      throw bad_entry(entry.path(), "is a folder within a class", "put its files one level higher");
    if (!is_image(entry.path()))
      throw bad_entry(entry.path(), "is neither .jpg, .jpeg nor .png", "convert it, or remove it");
    if (entry.is_symlink(failed) && !entry.exists(failed))
      throw bad_entry(entry.path(), "is a link to a file that is missing",
                      "restore the file, or remove the link");
    auto file = entry.path().filename().string();
    auto const place = Hash().add(name).add(file).value();
    files_.push_back({place, label, std::move(file)});
  }
  if (files_.size() == before)
    throw bad_entry(part_ / name, "holds no image", "add some, or remove the folder");
}

std::vector<std::int64_t> FolderImages::labels() const {
  std::vector<std::int64_t> labels;
  for (auto const& file : files_) labels.push_back(file.label);
  return labels;
}

std::vector<std::string> FolderImages::missing() const {
  std::vector<bool> seen(classes_.size());
  for (auto const& file : files_) seen[static_cast<std::size_t>(file.label)] = true;
  std::vector<std::string> missing;
  for (std::size_t label = 0; label < classes_.size(); ++label)
    if (!seen[label]) missing.push_back(classes_[label]);
  return missing;
}

fs::path FolderImages::path(std::int64_t image) const {
  expects(0 <= image && image < size(), "the image is in the folder");
  auto const& file = files_[static_cast<std::size_t>(image)];
  return part_ / classes_[static_cast<std::size_t>(file.label)] / file.name;
}

std::string FolderImages::name(std::int64_t image) const {
  return path(image).string();
}

std::string FolderImages::identity(std::int64_t image) const {
  auto const& file = files_[static_cast<std::size_t>(image)];
  return classes_[static_cast<std::size_t>(file.label)] + "/" + file.name;
}

std::int64_t FolderImages::stored_bytes(std::int64_t image) const {
  auto const file = path(image);
  std::error_code failed;
  auto const size = fs::file_size(file, failed);
  if (failed) throw bad_entry(file, "cannot be read: " + failed.message(), "restore it");
  return static_cast<std::int64_t>(size);
}

void FolderImages::load(std::int64_t image, std::vector<std::byte>& bytes) const {
  RandomAccessFile const file(path(image));
  bytes.resize(static_cast<std::size_t>(file.size()));
  file.read(0, bytes);
}

void FolderImages::read(std::int64_t image, ChooseRegion const& choose, ImageSize const& least,
                        std::int64_t channels, ReadBuffer& buffer) const {
  load(image, buffer.encoded);
  EncodedImage const encoded(buffer.encoded, name(image));
  encoded.decode(choose(encoded.size()), least, channels, buffer.pixels);
}

}  // namespace stratagem
