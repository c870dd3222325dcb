#include "data/images/orientation.hpp"

#include <cstdint>
#include <string_view>

namespace stratagem {
namespace {

using namespace std::string_view_literals;

constexpr int usual = 1;

/// Unsigned numbers in a text of bytes; 0 beyond its end.
class Numbers {
 public:
  Numbers(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::uint64_t at(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      auto const place = offset + (big_endian_ ? i : size - 1 - i);
      value = value << 8 | static_cast<unsigned char>(bytes_[place]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

/// Of Exif data, which are a TIFF file: tag 0x0112 of its first directory.
int orientation_in(std::string_view tiff) {
  constexpr std::size_t entry_bytes = 12;
  constexpr std::uint64_t tag = 0x0112, most = 8;
  if (!tiff.starts_with("II*\0"sv) && !tiff.starts_with("MM\0*"sv)) return usual;
  Numbers const numbers(tiff, tiff.front() == 'M');
  auto const directory = static_cast<std::size_t>(numbers.at(4, 4));
  auto const entries = numbers.at(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    auto const entry = directory + 2 + i * entry_bytes;
    if (numbers.at(entry, 2) != tag) continue;
    auto const value = numbers.at(entry + 8, 2);
    return value >= usual && value <= most ? static_cast<int>(value) : usual;
  }
  return usual;
}

/// Segments: a marker of two bytes, and a length that counts itself.
int orientation_of_jpeg(std::string_view file) {
  constexpr std::uint64_t app1 = 0xFFE1, scan = 0xFFDA;
  constexpr auto exif = "Exif\0\0"sv;
  Numbers const numbers(file, /*big_endian=*/true);
  for (std::size_t at = 2; at + 4 <= file.size();) {
    auto const marker = numbers.at(at, 2);
    auto const length = static_cast<std::size_t>(numbers.at(at + 2, 2));
    if (marker < 0xFF00 || marker == scan || length < 2) return usual;
    auto const segment = file.substr(at + 4, length - 2);
    if (marker == app1 && segment.starts_with(exif))
      return orientation_in(segment.substr(exif.size()));
    at += 2 + length;
  }
  return usual;
}

/// Chunks: a length, a name, the content and a checksum.
int orientation_of_png(std::string_view file) {
  Numbers const numbers(file, /*big_endian=*/true);
  for (std::size_t at = 8; at + 8 <= file.size();) {
    auto const length = static_cast<std::size_t>(numbers.at(at, 4));
    if (file.substr(at + 4, 4) == "eXIf") return orientation_in(file.substr(at + 8, length));
    at += 12 + length;
  }
  return usual;
}

}  // namespace

int stated_orientation(std::span<std::byte const> file) {
  std::string_view const bytes(reinterpret_cast<char const*>(file.data()), file.size());
  if (bytes.starts_with("\xFF\xD8")) return orientation_of_jpeg(bytes);
  if (bytes.starts_with("\x89PNG")) return orientation_of_png(bytes);
  return usual;
}

}  // namespace stratagem
