#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "data/tokens/token_text.hpp"

namespace stratagem {

/// What a file of tokens says of itself.
struct TokenShard {
  TokenText tokens;
  int width;                ///< of a token [B]
  std::int64_t vocabulary;  ///< of the tokenizer that usually writes such files
};

/// Opens a file of tokens in the format of llm.c: 256 int32 (magic number, version, count), then
/// the tokens; 20240520 and version 1: uint16 of GPT-2, 20240801 and version 7: uint32 of Llama 3.
/// Error(bad_data) names what is expected and what was found.
TokenShard open_shard(std::filesystem::path const& path);

/// What analysis/tokenize_text.py notes beside the shards it writes, in tokens.json.
struct TokenNotes {
  std::int64_t vocabulary = 0;
  double bytes_per_token = 0;  ///< of the evaluated text
};

/// That of a folder; none where there is no such file. Error(bad_data) for one that is damaged.
std::optional<TokenNotes> read_token_notes(std::filesystem::path const& folder);

}  // namespace stratagem
