#include "data/tokens/shards.hpp"

#include <array>
#include <fstream>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/bad_data.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t header_bytes = 1024;
constexpr char cure[] = "write it with analysis/tokenize_text.py, or as llm.c does";

struct Format {
  std::int32_t magic, version;
  int width;
  std::int64_t vocabulary;
};
constexpr std::array<Format, 2> formats{{{20240520, 1, 2, 50257}, {20240801, 7, 4, 128256}}};

/// Other files of llm.c, which are easily mistaken for tokens.
char const* kind_of(std::int32_t magic) {
  switch (magic) {
    case 20240326:
      return " (a model of llm.c)";
    case 20240327:
      return " (debug state of llm.c)";
    case 20240328:
      return " (a tokenizer of llm.c)";
    case 20240522:
      return " (an evaluation set of llm.c)";
    default:
      return "";
  }
}

Format const& format_of(std::string const& name, std::int32_t magic, std::int32_t version) {
  for (auto const& format : formats) {
    if (format.magic != magic) continue;
    if (format.version == version) return format;
    throw bad_data(name, "another version of the format", std::to_string(format.version),
                   std::to_string(version), cure);
  }
  throw bad_data(name, "it holds no tokens: another magic number",
                 str(formats[0].magic, " or ", formats[1].magic), str(magic, kind_of(magic)), cure);
}

}  // namespace

TokenShard open_shard(std::filesystem::path const& path) {
  auto file = std::make_shared<RandomAccessFile const>(path);
  auto const name = path.string();
  if (file->size() < header_bytes)
    throw bad_data(name, "too short for its header", str(header_bytes, " bytes"),
                   str(file->size(), " bytes"), cure);
  std::array<std::int32_t, 3> header{};
  file->read(0, std::as_writable_bytes(std::span(header)));
  auto const& format = format_of(name, header[0], header[1]);
  auto const count = std::int64_t{header[2]};
  if (count <= 0)
    throw bad_data(name, "the header counts no tokens", "1 or more", std::to_string(count), cure);
  if (auto const bytes = header_bytes + count * format.width; bytes != file->size())
    throw bad_data(name, str("the size does not fit the ", count, " tokens of its header"),
                   str(bytes, " bytes"), str(file->size(), " bytes"), cure);
  return {TokenText(std::move(file), header_bytes, count, format.width), format.width,
          format.vocabulary};
}

std::optional<TokenNotes> read_token_notes(std::filesystem::path const& folder) {
  auto const path = folder / "tokens.json";
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return std::nullopt;
  try {
    std::ifstream file(path);
    auto const notes = nlohmann::json::parse(file);
    auto const& evaluated = notes.at("val");
    auto const tokens = evaluated.at("tokens").get<std::int64_t>();
    auto const bytes = evaluated.at("bytes").get<std::int64_t>();
    TokenNotes const found{
        .vocabulary = notes.at("vocabulary").get<std::int64_t>(),
        .bytes_per_token =
            tokens > 0 ? static_cast<double>(bytes) / static_cast<double>(tokens) : 0};
    if (found.vocabulary > 1 && tokens >= 0 && bytes >= 0) return found;
  } catch (nlohmann::json::exception const&) {
    // told below
  }
  throw bad_data(path.string(), "damaged notes on the tokens",
                 "vocabulary, and tokens and bytes of val", "something else",
                 "write the shards again with analysis/tokenize_text.py");
}

}  // namespace stratagem
