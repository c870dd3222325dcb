#include "data/tar/shard.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/files/random_access_file.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "data/images/image_names.hpp"
#include "data/images/image_store.hpp"
#include "data/tar/tar_archive.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_label_bytes = 20;

constexpr char sort_it[] = "write the shard again with tar --sort=name";

struct NameParts {
  std::string_view key;
  std::string extension;  ///< in lower case
};

/// Empty if the file belongs to no key.
std::optional<NameParts> parts_of(std::string_view name) {
  auto const base = name.rfind('/') + 1;  // 0 if there is no folder
  auto const dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  return NameParts{name.substr(0, dot), lower_case(name.substr(dot + 1))};
}

/// Members that stand next to each other and have the same key.
struct Group {
  std::string_view key;
  TarMember const* image = nullptr;
  TarMember const* label = nullptr;
};

/// Makes samples of members.
class SampleList {
 public:
  explicit SampleList(fs::path const& shard) : file_(shard) {}

  void add(TarMember const& member);
  std::vector<ShardSample> finish();

 private:
  Error bad(std::string const& problem, std::string const& expected, std::string const& found,
            std::string const& cure) const {
    return bad_data(file_.path().string(), problem, expected, found, cure);
  }
  void end_group();
  std::int64_t read_label(TarMember const& member) const;

  RandomAccessFile file_;
  Group group_;
  std::unordered_set<std::string_view> keys_;
  std::vector<ShardSample> samples_;
};

void SampleList::add(TarMember const& member) {
  auto const parts = parts_of(member.name);
  if (!parts) return;
  if (parts->key != group_.key) {
    end_group();
    group_ = {.key = parts->key};
    if (!keys_.insert(parts->key).second)
      throw bad(str("the files of the key ", printable(parts->key), " do not stand together"),
                "one next to the other", str(printable(member.name), " after other keys"), sort_it);
  }
  bool const image = is_image_extension(parts->extension);
  if (!image && parts->extension != "cls") return;
  auto const*& place = image ? group_.image : group_.label;
  if (place != nullptr)
    throw bad(str("the key ", printable(group_.key), " has two ", image ? "images" : "labels"),
              str("one besides ", printable(place->name)), printable(member.name),
              "give every image a key of its own: its name up to the first dot");
  place = &member;
}

void SampleList::end_group() {
  auto const& [key, image, label] = group_;
  if (image == nullptr && label == nullptr) return;
  auto const name = printable(key);
  if (label == nullptr)
    throw bad(str("the image ", printable(image->name), " has no label"),
              str(name, ".cls next to it"), "none", str("add its class as text, and ", sort_it));
  if (image == nullptr)
    throw bad(str("the label ", printable(label->name), " has no image"),
              str(name, ".jpg, .jpeg or .png next to it"), "none",
              str("add the image, and ", sort_it));
  if (image->size == 0)
    throw bad(str("the image ", printable(image->name), " is empty"), "at least 1 byte", "0",
              "write the shard again with the whole image");
  samples_.push_back({std::string(key), image->offset, image->size, read_label(*label)});
}

std::int64_t SampleList::read_label(TarMember const& member) const {
  std::string text(static_cast<std::size_t>(std::min(member.size, most_label_bytes)), '\0');
  file_.read(member.offset, std::as_writable_bytes(std::span(text)));
  auto const digits = trim(text);
  bool const whole = member.size <= most_label_bytes && !digits.empty() &&
                     digits.find_first_not_of("0123456789") == std::string_view::npos;
  auto const label = whole ? parse_integer(digits) : std::nullopt;
  if (label && *label <= most_label) return *label;
  throw bad(str("the label ", printable(member.name), " is no class"),
            str("an integer of 0 to ", most_label, " as text"),
            str('"', printable(text), '"', member.size > most_label_bytes ? "..." : ""),
            "number the classes from 0, and write the number into the file");
}

std::vector<ShardSample> SampleList::finish() {
  end_group();
  if (samples_.empty())
    throw bad("the shard holds no images",
              "files KEY.jpg, .jpeg or .png, and KEY.cls, without a dot in KEY", "none",
              "add some, or remove the shard");
  return std::move(samples_);
}

}  // namespace

std::vector<ShardSample> list_samples(fs::path const& shard) {
  auto const members = list_members(shard);
  SampleList samples(shard);
  for (auto const& member : members) samples.add(member);
  return samples.finish();
}

}  // namespace stratagem
