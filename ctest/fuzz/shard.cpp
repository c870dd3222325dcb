#include "data/tar/shard.hpp"

#include <string_view>
#include <unordered_set>

#include "data/tar_files.hpp"
#include "fuzz/input_file.hpp"

using namespace stratagem;

namespace {

constexpr std::size_t block = 512;

void read(test::InputFile const& file, std::string const& content) {
  file.hold(content);
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    auto const samples = list_samples(file.path());
    test::require(!samples.empty());
    std::unordered_set<std::string> keys;
    std::int64_t end = 0;
    for (auto const& [key, offset, size, label] : samples) {
      test::require(!key.empty() && keys.insert(key).second);
      test::require(offset >= end + static_cast<std::int64_t>(block) && size > 0);
      test::require(size <= static_cast<std::int64_t>(content.size()) - offset);
      test::require(label >= 0 && label <= 65535);
      end = offset + size;
    }
  });
}

/// With right checksums, which a mutation would break, in all blocks that look like headers; and
/// with an end.
std::string repaired(std::string const& content) {
  std::string archive;
  for (std::size_t at = 0; at < content.size(); at += block) {
    auto const part = test::padded(content.substr(at, block));
    archive += part.compare(257, 5, "ustar") == 0 ? test::sealed(part) : part;
  }
  return archive + test::tar_end;
}

/// An archive of members that stand in `bytes` as type, length of the name, length of the content,
/// name and content.
std::string packed(std::string_view bytes) {
  auto take = [&](std::size_t count) {
    std::string const taken(bytes.substr(0, count));
    bytes.remove_prefix(taken.size());
    return taken;
  };
  std::string archive;
  while (bytes.size() >= 3) {
    auto const start = take(3);
    auto const name = take(static_cast<unsigned char>(start[1]));
    archive += test::tar_member(name, take(static_cast<unsigned char>(start[2])), start[0]);
  }
  return archive + test::tar_end;
}

}  // namespace

/// An archive as it is, one that is repaired, and a description of one.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::InputFile const file;
  std::string const content(reinterpret_cast<char const*>(data), size);
  read(file, content);
  read(file, repaired(content));
  read(file, packed(content));
  return 0;
}
