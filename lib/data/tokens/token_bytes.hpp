#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// What every token stands for, from a tokenizer.bin of llm.c: 256 uint32 (magic number 20240328,
/// version 1 or 2, count), then for each token its length in one byte, and its bytes.
/// Error(bad_data) for a file that is not so.
std::vector<std::string> read_token_bytes(std::filesystem::path const& path);

}  // namespace stratagem
