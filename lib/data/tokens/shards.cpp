#include "data/tokens/shards.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "base/bad_data.hpp"
#include "base/files/file.hpp"

namespace stratagem {
namespace {

constexpr char cure[] = "write it with analysis/tokenize_text.py, or as llm.c does";

struct Format {
  std::int32_t magic, version;
  int width;
  std::int64_t vocabulary;
};
constexpr std::array<Format, 2> formats{{{20240520, 1, 2, 50257}, {20240801, 7, 4, 128256}}};

/// Other files of llm.c, which are easily mistaken for tokens.
struct OtherFile {
  std::int32_t magic;
  char const* what;
};
constexpr std::array<OtherFile, 4> others{{{20240326, " (a model of llm.c)"},
                                           {20240327, " (debug state of llm.c)"},
                                           {20240328, " (a tokenizer of llm.c)"},
                                           {20240522, " (an evaluation set of llm.c)"}}};

char const* kind_of_magic(std::int32_t magic) {
  auto const* const other = std::ranges::find(others, magic, &OtherFile::magic);
  return other == others.end() ? "" : other->what;
}

Format const& format_of(std::string const& name, std::int32_t magic, std::int32_t version) {
  for (auto const& format : formats) {
    if (format.magic != magic) continue;
    if (format.version == version) return format;
    throw bad_data(name, "another version of the format", std::to_string(format.version),
                   std::to_string(version), cure);
  }
  throw bad_data(name, "it holds no tokens: another magic number",
                 str(formats[0].magic, " or ", formats[1].magic), str(magic, kind_of_magic(magic)),
                 cure);
}

}  // namespace

bool is_of_llm_c(RandomAccessFile const& file) {
  std::int32_t magic = 0;
  if (file.size() < static_cast<std::int64_t>(sizeof magic)) return false;
  file.read(0, std::as_writable_bytes(std::span(&magic, 1)));
  return std::ranges::count(formats, magic, &Format::magic) +
             std::ranges::count(others, magic, &OtherFile::magic) >
         0;
}

ShardHeader read_shard_header(RandomAccessFile const& file) {
  auto const name = file.path().string();
  if (file.size() < ShardHeader::bytes)
    throw bad_data(name, "too short for its header", str(ShardHeader::bytes, " bytes"),
                   str(file.size(), " bytes"), cure);
  std::array<std::int32_t, 3> start{};
  file.read(0, std::as_writable_bytes(std::span(start)));
  auto const& format = format_of(name, start[0], start[1]);
  auto const count = std::int64_t{start[2]};
  if (count <= 0)
    throw bad_data(name, "the header counts no tokens", "1 or more", std::to_string(count), cure);
  if (auto const bytes = ShardHeader::bytes + count * format.width; bytes != file.size())
    throw bad_data(name, str("the size does not fit the ", count, " tokens of its header"),
                   str(bytes, " bytes"), str(file.size(), " bytes"), cure);
  return {count, format.width, format.vocabulary};
}

namespace {

/// A whole number in [least, most]; nothing for anything else.
std::optional<std::int64_t> whole(nlohmann::json const& object, char const* key, std::int64_t least,
                                  std::int64_t most) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  auto const& value = object[key];
  if (!value.is_number_integer()) return std::nullopt;
  bool const huge =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (huge || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<TokenNotes> notes_in(nlohmann::json const& document) {
  constexpr std::int64_t most_tokens = 1 << 20, most_bytes = std::int64_t{1} << 53;
  auto const vocabulary = whole(document, "vocabulary", 2, most_tokens);
  auto const evaluated = document.is_object() ? document.value("val", nlohmann::json()) : document;
  auto const tokens = whole(evaluated, "tokens", 0, most_bytes);
  auto const bytes = whole(evaluated, "bytes", 0, most_bytes);
  if (!vocabulary || !tokens || !bytes) return std::nullopt;
  auto const ratio = *tokens > 0 ? static_cast<double>(*bytes) / static_cast<double>(*tokens) : 0;
  return TokenNotes{.vocabulary = *vocabulary, .bytes_per_token = ratio};
}

}  // namespace

std::optional<TokenNotes> read_token_notes(std::filesystem::path const& folder) {
  auto const path = folder / "tokens.json";
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return std::nullopt;
  auto const text = read_text(path, ExitCode::bad_data);
  auto const notes = notes_in(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false));
  if (!notes)
    throw bad_data(path.string(), "damaged notes on the tokens",
                   "vocabulary, and tokens and bytes of val", "something else",
                   "write the shards again with analysis/tokenize_text.py");
  return notes;
}

}  // namespace stratagem
