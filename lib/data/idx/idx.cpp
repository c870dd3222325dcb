#include "data/idx/idx.hpp"

#include <cstring>
#include <limits>

#include <ATen/ATen.h>

#include "base/deflate.hpp"
#include "base/files/file.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "data/idx/gunzip.hpp"
#include "data/source.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::byte unsigned_byte_type{0x08};

constexpr std::size_t header_bytes(std::size_t dimensions) {
  return 4 + 4 * dimensions;
}

struct Header {
  std::vector<std::int64_t> sizes;
  std::size_t file_bytes;  ///< of header and values together
};

std::int64_t big_endian(std::span<std::byte const> bytes) {
  std::int64_t value = 0;
  for (auto byte : bytes) value = value << 8 | std::to_integer<std::int64_t>(byte);
  return value;
}

Header parse_header(fs::path const& path, std::span<std::byte const> start,
                    std::size_t dimensions) {
  auto const length = header_bytes(dimensions);
  if (start.size() < length)
    throw bad_file(path, "the IDX header is cut off", str(length, " bytes"), str(start.size()));
  std::byte const magic[]{{}, {}, unsigned_byte_type, static_cast<std::byte>(dimensions)};
  if (std::memcmp(start.data(), magic, sizeof magic) != 0)
    throw bad_file(path,
                   str("this is no IDX file of unsigned bytes in ", dimensions, " dimensions"),
                   str("magic number ", hex_text(magic)), hex_text(start.first(4)));
  Header header{{}, length};
  std::size_t values = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    auto const size = big_endian(start.subspan(4 + 4 * d, 4));
    header.sizes.push_back(size);
    if (size == 0)
      throw bad_file(path, str("size ", d + 1, " of the IDX header"), "at least 1", "0");
    // Half of the range of 64 bits leaves room for the header.
    if (values > std::numeric_limits<std::size_t>::max() / 2 / static_cast<std::size_t>(size))
      throw bad_file(path, "the sizes in the IDX header", "values that a file can hold",
                     "more than 2^63 bytes");
    values *= static_cast<std::size_t>(size);
  }
  header.file_bytes += values;
  return header;
}

/// The content of the compressed file, at most as long as its header says.
std::vector<std::byte> unpack(fs::path const& path, std::span<std::byte const> packed,
                              std::size_t dimensions) {
  auto const start = gunzip(path, packed, header_bytes(dimensions));
  auto const promised = parse_header(path, start.content, dimensions).file_bytes;
  if (promised / deflate_max_ratio > packed.size())
    throw bad_file(path, "the file is too short for what its IDX header promises",
                   str(promised, " bytes once unpacked"), str(packed.size(), " packed bytes"));
  if (promised > most_source_bytes)
    throw bad_file(path, "the file is too large for a packed one",
                   str("at most ", most_source_bytes, " bytes once unpacked"), str(promised));
  auto unpacked = gunzip(path, packed, promised);
  if (!unpacked.ended)
    throw bad_file(path, "the file holds more than its IDX header promises",
                   str(promised, " bytes once unpacked"), "more");
  if (unpacked.unread_bytes > 0)
    throw bad_file(path, "bytes follow the gzip stream", "none", str(unpacked.unread_bytes));
  return std::move(unpacked.content);
}

}  // namespace

IdxFile read_idx(fs::path const& path, std::size_t dimensions, std::string_view published_sha256) {
  auto content = read_bytes(path, ExitCode::bad_data, most_source_bytes);
  if (path.extension() == ".gz") content = unpack(path, content, dimensions);
  auto const header = parse_header(path, content, dimensions);
  if (content.size() != header.file_bytes)
    throw bad_file(path, "the file's length does not match its IDX header",
                   str(header.file_bytes, " bytes"), str(content.size()));
  auto values = at::empty(header.sizes, at::kByte);
  auto const start = header_bytes(dimensions);
  std::memcpy(values.data_ptr(), content.data() + start, content.size() - start);
  return {std::move(values), identify(path, content, published_sha256)};
}

}  // namespace stratagem
