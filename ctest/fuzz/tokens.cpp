#include <filesystem>

#include "data/tokens/shards.hpp"
#include "data/tokens/token_bytes.hpp"
#include "fuzz/input_file.hpp"

using namespace stratagem;

namespace {

void read_shard(test::InputFile const& file, std::size_t size) {
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    auto const header = read_shard_header(RandomAccessFile(file.path()));
    test::require(header.count > 0 && (header.width == 2 || header.width == 4));
    test::require(static_cast<std::size_t>(ShardHeader::bytes + header.count * header.width) ==
                  size);
  });
}

void read_notes(std::filesystem::path const& folder) {
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    auto const notes = read_token_notes(folder);
    test::require(notes.has_value() && notes->vocabulary > 1 && notes->bytes_per_token >= 0);
  });
}

void read_tokenizer(test::InputFile const& file, std::size_t size) {
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    std::size_t bytes = ShardHeader::bytes;
    for (auto const& token : read_token_bytes(file.path())) bytes += 1 + token.size();
    test::require(bytes == size);
  });
}

}  // namespace

/// A file as tokens, as what is noted beside them, and as what they stand for.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::InputFile const file;
  static test::Scratch const folder;
  static bool const linked = (file.appear_as(folder / "tokens.json"), true);
  test::require(linked);
  file.hold({data, size});
  read_shard(file, size);
  read_notes(folder.path());
  read_tokenizer(file, size);
  return 0;
}
