#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/files/random_access_file.hpp"

namespace stratagem {

/// What a file of tokens says of itself.
struct ShardHeader {
  static constexpr std::int64_t bytes = 1024;  ///< of the header; tokens follow

  std::int64_t count = 0;       ///< of tokens
  int width = 0;                ///< of a token [B]
  std::int64_t vocabulary = 0;  ///< of the tokenizer that usually writes such files
};

/// Of a file in the format of llm.c: 256 int32 (magic number, version, count), then the tokens;
/// 20240520 and version 1: uint16 of GPT-2, 20240801 and version 7: uint32 of Llama 3.
/// Error(bad_data) names what is expected and what was found.
ShardHeader read_shard_header(RandomAccessFile const& file);

/// Whether it begins as files of llm.c do, of tokens or of others.
bool is_of_llm_c(RandomAccessFile const& file);

/// What analysis/tokenize_text.py notes beside the shards it writes, in tokens.json.
struct TokenNotes {
  std::int64_t vocabulary = 0;
  double bytes_per_token = 0;  ///< of the evaluated text
};

/// That of a folder; none where there is no such file. Error(bad_data) for one that is damaged.
std::optional<TokenNotes> read_token_notes(std::filesystem::path const& folder);

}  // namespace stratagem
