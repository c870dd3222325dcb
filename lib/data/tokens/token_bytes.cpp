#include "data/tokens/token_bytes.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bad_data.hpp"
#include "base/files/file.hpp"

namespace stratagem {

std::vector<std::string> read_token_bytes(std::filesystem::path const& path) {
  constexpr std::size_t header_bytes = 1024;
  constexpr std::uint32_t magic = 20240328;
  constexpr char cure[] = "write it with analysis/tokenize_text.py, or as llm.c does";
  auto const bytes = read_bytes(path, ExitCode::bad_data, most_text);
  auto const name = path.string();
  std::array<std::uint32_t, 3> header{};
  if (bytes.size() < header_bytes)
    throw bad_data(name, "too short for its header", str(header_bytes, " bytes"),
                   str(bytes.size(), " bytes"), cure);
  std::memcpy(header.data(), bytes.data(), sizeof header);
  if (header[0] != magic)
    throw bad_data(name, "it is no tokenizer: another magic number", std::to_string(magic),
                   std::to_string(header[0]), cure);
  if (header[1] != 1 && header[1] != 2)
    throw bad_data(name, "another version of the format", "1 or 2", std::to_string(header[1]),
                   cure);
  std::vector<std::string> tokens;
  auto rest = std::span(bytes).subspan(header_bytes);
  while (tokens.size() < header[2]) {
    auto const length = rest.empty() ? 0 : static_cast<std::size_t>(rest[0]);
    if (rest.size() < length + 1)
      throw bad_data(name, str("it ends within token ", tokens.size()), str(header[2], " tokens"),
                     str(tokens.size(), " whole ones"), cure);
    tokens.emplace_back(reinterpret_cast<char const*>(rest.data()) + 1, length);
    rest = rest.subspan(length + 1);
  }
  if (!rest.empty())
    throw bad_data(name, "it goes on behind its last token", "the end",
                   str(rest.size(), " more bytes"), cure);
  return tokens;
}

}  // namespace stratagem
