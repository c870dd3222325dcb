#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/image_store.hpp"

namespace stratagem {

/// The classes of a set: names of the folders in `part`, in bytewise order. Error(bad_data) if
/// there are none.
std::vector<std::string> list_classes(std::filesystem::path const& part);

/// JPEG and PNG files, in one folder per class (torchvision's ImageFolder). They are counted in the
/// order of a hash of their class and name, so that the first or last of them are a fair sample,
/// and stay where they are when others are added. Hidden files are left out.
class FolderImages final : public ImageStore {
 public:
  /// Lists `part`, whose folders must be among `classes`; not all of these need be there.
  /// Error(bad_data) names a folder or file that does not belong there.
  FolderImages(std::filesystem::path part, std::vector<std::string> classes);

  std::int64_t size() const { return std::ssize(files_); }
  /// Index in `classes` of every image.
  std::vector<std::int64_t> labels() const;
  /// Classes without an image.
  std::vector<std::string> missing() const;

  std::int64_t channels() const override { return 0; }
  std::string name(std::int64_t image) const override;
  std::string identity(std::int64_t image) const override;
  std::int64_t stored_bytes(std::int64_t image) const override;
  void load(std::int64_t image, std::vector<std::byte>& bytes) const override;
  void read(std::int64_t image, ChooseRegion const& choose, ImageSize const& least,
            std::int64_t channels, ReadBuffer& buffer) const override;

 private:
  struct File {
    std::uint64_t place;  ///< by which files are sorted
    std::int64_t label;
    std::string name;
  };

  void list(std::int64_t label);
  std::filesystem::path path(std::int64_t image) const;

  std::filesystem::path part_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

}  // namespace stratagem
