#include "data/tokens/own_text.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/bad_data.hpp"
#include "data/tokens/shards.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t byte_values = 256;
constexpr std::int64_t held_out_share = 10;  // one part of so many is evaluated

/// Tokens of one part of the data, and what is known of them.
struct Texts {
  std::vector<TokenText> texts;
  std::int64_t vocabulary = byte_values;
  double bytes_per_token = 1;
  int width = 1;
};

Texts bytes_of(std::vector<fs::path> const& paths) {
  Texts found;
  for (auto const& path : paths) {
    auto file = std::make_shared<RandomAccessFile const>(path);
    auto const size = file->size();
    found.texts.emplace_back(std::move(file), 0, size, 1);
  }
  return found;
}

Texts shards_of(std::vector<fs::path> const& paths) {
  Texts found{.vocabulary = 0, .bytes_per_token = 0, .width = 0};
  for (auto const& path : paths) {
    auto file = std::make_shared<RandomAccessFile const>(path);
    auto const header = read_shard_header(*file);
    if (found.width != 0 && header.width != found.width)
      throw bad_data(path.string(), "tokens of another width than in the first file",
                     str(found.width, " bytes"), str(header.width, " bytes"),
                     "take files of one tokenizer");
    found.width = header.width;
    found.vocabulary = header.vocabulary;
    found.texts.emplace_back(std::move(file), ShardHeader::bytes, header.count, header.width);
  }
  if (auto const notes = read_token_notes(paths.front().parent_path())) {
    found.vocabulary = notes->vocabulary;
    found.bytes_per_token = notes->bytes_per_token;
  }
  return found;
}

/// The last tenth of all tokens, cut off `texts`.
std::vector<TokenText> take_last_tenth(std::vector<TokenText>& texts) {
  std::int64_t tokens = 0;
  for (auto const& text : texts) tokens += text.size();
  std::vector<TokenText> taken;
  auto wanted = tokens / held_out_share;
  while (wanted > 0) {
    auto const last = texts.back();
    texts.pop_back();
    auto const part = std::min(wanted, last.size());
    taken.insert(taken.begin(), last.part(last.size() - part, part));
    if (part < last.size()) texts.push_back(last.part(0, last.size() - part));
    wanted -= part;
  }
  return taken;
}

SampleSet set_of(std::vector<TokenText> texts, Texts const& like, std::int64_t length) {
  auto sequences = std::make_shared<Sequences const>(std::move(texts), length, like.vocabulary,
                                                     like.bytes_per_token);
  auto const count = sequences->size();
  return {.text = std::move(sequences), .sequences = count};
}

void require_sequence(SampleSet const& set, std::string const& what, std::string const& where) {
  if (set.size() > 0) return;
  std::int64_t tokens = 0;
  for (auto const& text : set.text->texts()) tokens = std::max(tokens, text.size());
  throw bad_data(where, str("the text to ", what, " is too short for a sequence"),
                 str(set.text->length() + 1, " tokens or more in one file"),
                 str(tokens, " at most"), "give more text, or make data.seq_len smaller");
}

}  // namespace

Dataset open_own_text(DataConfig const& config, OwnParts const& parts) {
  auto const read = parts.layout == OwnLayout::shards ? shards_of : bytes_of;
  auto train = read(parts.train);
  auto val = parts.val.empty() ? Texts() : read(parts.val);
  if (parts.val.empty() && config.holdout == 0) val.texts = take_last_tenth(train.texts);
  if (!parts.val.empty() && val.width != train.width)
    throw bad_data(parts.val.front().string(), "tokens of another width than those to train on",
                   str(train.width, " bytes"), str(val.width, " bytes"),
                   "take files of one tokenizer");
  Dataset dataset{.name = config.dataset,
                  .classes = train.vocabulary,
                  .train = set_of(std::move(train.texts), train, config.seq_len),
                  .test = set_of(std::move(val.texts), train, config.seq_len),
                  .remarks = parts.remarks};
  require_sequence(dataset.train, "train on", config.path);
  if (config.holdout == 0) require_sequence(dataset.test, "evaluate", config.path);
  return dataset;
}

}  // namespace stratagem
