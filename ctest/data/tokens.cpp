#include <array>
#include <fstream>
#include <numeric>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/files/file.hpp"
#include "base/text.hpp"
#include "data/batch.hpp"
#include "data/loader.hpp"
#include "data/tokens/own_text.hpp"
#include "data/tokens/shards.hpp"
#include "support/expect_bad_data.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

using test::expect_bad_data;

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<char const*>(&number), sizeof number);
}

/// A file as llm.c writes it, with tokens 0, 1, 2, ...
template <class Token = std::uint16_t>
std::string shard(std::int32_t count, std::int32_t magic = 20240520, std::int32_t version = 1) {
  std::string bytes;
  append(bytes, magic);
  append(bytes, version);
  append(bytes, count);
  bytes.resize(1024);
  for (std::int32_t i = 0; i < count; ++i) append(bytes, static_cast<Token>(i));
  return bytes;
}

DataConfig config_of(std::filesystem::path const& path, std::int64_t length = 8) {
  return {.dataset = "own", .path = path.string(), .seq_len = length};
}

std::vector<std::int64_t> values(at::Tensor const& tensor) {
  auto const flat = tensor.contiguous();
  auto const* first = flat.const_data_ptr<std::int64_t>();
  return {first, first + flat.numel()};
}

TEST(Tokens, SequencesAreConsecutiveAndLabelsFollow) {
  std::vector<std::uint8_t> text(26);
  std::iota(text.begin(), text.end(), 0);
  Sequences const sequences(
      {TokenText(text), TokenText(std::vector<std::uint8_t>(7)), TokenText(text)}, 8, 256, 1);
  EXPECT_EQ(sequences.size(), 6) << "three of each long text, none of the short one";
  std::vector<std::int64_t> tokens(8), labels(8);
  for (std::int64_t const sequence : {1, 4}) {
    sequences.read(sequence, tokens, labels);
    EXPECT_EQ(tokens.front(), 8);
    EXPECT_EQ(labels.front(), 9);
    EXPECT_EQ(labels.back(), 16);
  }
}

TEST(Tokens, BytesOfAFileAreTokensAndItsLastTenthIsEvaluated) {
  test::Scratch const folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(32 + i % 219);
  replace_file(folder / "book.txt", text);
  auto const dataset = load_dataset(config_of(folder / "book.txt"));
  EXPECT_EQ(dataset.classes, 256);
  EXPECT_EQ(dataset.train.size(), 899 / 8);
  EXPECT_EQ(dataset.test.size(), 99 / 8);
  BatchMaker const maker(dataset, {});
  auto const train = maker.evaluation_batch(dataset.train, {2, 4});
  EXPECT_EQ(train.inputs.sizes(), at::IntArrayRef({2, 8}));
  EXPECT_EQ(train.size(), 2);
  EXPECT_EQ(values(train.inputs[0]).front(), 48);
  auto const test = maker.evaluation_batch(dataset.test, {0, 1});
  EXPECT_EQ(values(test.inputs).front(), 32 + 900 % 219);
  EXPECT_EQ(values(test.labels).front(), 32 + 901 % 219);
  EXPECT_EQ(dataset.train.text->bytes_per_token(), 1);
}

TEST(Tokens, FoldersHaveTheirOwnPartToEvaluate) {
  test::Scratch const folder;
  replace_file(folder / "train-1.txt", std::string(100, 'a'));
  replace_file(folder / "train-2.txt", std::string(100, 'b'));
  replace_file(folder / "val.txt", std::string(50, 'c'));
  auto const dataset = load_dataset(config_of(folder.path()));
  EXPECT_EQ(dataset.train.size(), 24);
  EXPECT_EQ(dataset.test.size(), 6);
  auto held = config_of(folder.path());
  held.holdout = 4;
  auto const other = load_dataset(held);
  EXPECT_EQ(other.train.size(), 20);
  EXPECT_EQ(other.test.size(), 4);
  EXPECT_NE(other.fingerprint, dataset.fingerprint);
  BatchMaker const maker(other, {});
  EXPECT_EQ(values(maker.evaluation_batch(other.test, {0, 1}).inputs).front(), 'b');
}

TEST(Tokens, ShardsHoldTokensOfTwoOrFourBytes) {
  test::Scratch const folder;
  replace_file(folder / "train_0.bin", shard(1001));
  replace_file(folder / "train_1.bin", shard(501));
  replace_file(folder / "val_0.bin", shard(101));
  auto const dataset = load_dataset(config_of(folder.path(), 100));
  EXPECT_EQ(dataset.classes, 50257);
  EXPECT_EQ(dataset.train.size(), 15);
  EXPECT_EQ(dataset.test.size(), 1);
  EXPECT_EQ(dataset.train.text->bytes_per_token(), 0) << "unknown";
  BatchMaker const maker(dataset, {});
  auto const batch = maker.evaluation_batch(dataset.train, {9, 11});
  EXPECT_EQ(values(batch.inputs[0]).front(), 900);
  EXPECT_EQ(values(batch.labels[0]).back(), 1000);
  EXPECT_EQ(values(batch.inputs[1]).front(), 0);

  test::Scratch const wide;
  replace_file(wide / "train.bin", shard<std::uint32_t>(70'001, 20240801, 7));
  replace_file(wide / "tokens.json",
               R"({"vocabulary": 70001, "val": {"tokens": 10, "bytes": 42}})");
  auto const other = load_dataset(config_of(wide.path(), 100));
  EXPECT_EQ(other.classes, 70'001);
  EXPECT_EQ(other.train.text->bytes_per_token(), 4.2);
  auto const last = BatchMaker(other, {}).evaluation_batch(other.test, {68, 69});
  EXPECT_EQ(values(last.inputs).front(), 63'001 + 6'800);
}

TEST(Tokens, DamagedShardsAreNamed) {
  test::Scratch const folder;
  auto const path = folder / "train.bin";
  auto const open = [&](std::string const& bytes) {
    replace_file(path, bytes);
    return [&] { read_shard_header(RandomAccessFile(path)); };
  };
  expect_bad_data(open("short"), "too short for its header (expected 1024 bytes, found 5 bytes)");
  expect_bad_data(open(shard(9, 20240326)), "20240326 (a model of llm.c)");
  expect_bad_data(open(shard(9, 20240328)), "20240328 (a tokenizer of llm.c)");
  expect_bad_data(open(shard(9, 7)), "expected 20240520 or 20240801, found 7");
  expect_bad_data(open(shard(9, 20240520, 2)),
                  "another version of the format (expected 1, found 2)");
  expect_bad_data(open(shard(0)), "the header counts no tokens");
  expect_bad_data(open(shard(9) + "x"), "expected 1042 bytes, found 1043 bytes");
  expect_bad_data(open(shard(-9)), "found -9");
}

TEST(Tokens, DataThatCannotBeUsedAreRefused) {
  test::Scratch const folder;
  auto const load = [&](std::int64_t length = 8) {
    return [&folder, length] { load_dataset(config_of(folder.path(), length)); };
  };
  replace_file(folder / "train.bin", shard(1001));
  replace_file(folder / "val.bin", shard(9));
  expect_bad_data(load(9), "the text to evaluate is too short for a sequence (expected 10 tokens");
  replace_file(folder / "train_2.bin", shard<std::uint32_t>(99, 20240801, 7));
  expect_bad_data(load(), "tokens of another width than in the first file");
  std::filesystem::remove(folder / "train_2.bin");
  replace_file(folder / "tokens.json", R"({"vocabulary": 500})");
  expect_bad_data(load(), "damaged notes on the tokens");
  replace_file(folder / "tokens.json", R"({"vocabulary": 500, "val": {"tokens": 9, "bytes": 18}})");
  auto const dataset = load_dataset(config_of(folder.path()));
  BatchMaker const maker(dataset, {});
  EXPECT_NO_THROW(static_cast<void>(maker.evaluation_batch(dataset.train, {61, 62})));
  expect_bad_data(
      [&] {
        static_cast<void>(maker.evaluation_batch(dataset.train, {62, 63}));
      },
      "a token beyond the vocabulary at byte 2024 (expected tokens below 500, found 500)");
  replace_file(folder / "train.txt", "text");
  expect_bad_data(load(), "holds train.txt and train.bin");
}

/// A file that becomes shorter ends the run with a message, not with a signal.
TEST(Tokens, AFileThatShrinksIsNoticed) {
  test::Scratch const folder;
  replace_file(folder / "train.txt", std::string(1000, 'a'));
  auto const dataset = load_dataset(config_of(folder.path()));
  std::filesystem::resize_file(folder / "train.txt", 100);
  expect_bad_data(
      [&] {
        static_cast<void>(BatchMaker(dataset, {}).evaluation_batch(dataset.train, {100, 101}));
      },
      "the file ends at byte");
}

TEST(Tokens, SyntheticTextHasItsEntropy) {
  auto const dataset = load_dataset({.dataset = "synthetic-text", .seq_len = 64});
  EXPECT_EQ(dataset.classes, 16);
  auto const known = whole_size({.dataset = "synthetic-text", .seq_len = 64});
  EXPECT_EQ(known.train, dataset.train.size()) << "without making the text";
  EXPECT_EQ(known.test, dataset.test.size());
  EXPECT_EQ(known.classes, dataset.classes);
  EXPECT_EQ(dataset.fingerprint,
            load_dataset({.dataset = "synthetic-text", .seq_len = 64}).fingerprint);
  auto const size = dataset.train.size();
  auto const batch = BatchMaker(dataset, {}).evaluation_batch(dataset.train, {0, size});
  auto const text = values(batch.inputs);
  // Given the two symbols before, the four successors have probabilities 0.5, 0.25, 0.15 and 0.1.
  std::vector<double> counts(16 * 16 * 16);
  for (std::size_t i = 2; i < text.size(); ++i)
    ++counts[static_cast<std::size_t>(text[i - 2] * 256 + text[i - 1] * 16 + text[i])];
  double entropy = 0;
  for (std::size_t context = 0; context < 256; ++context) {
    double const all =
        std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(context * 16),
                        counts.begin() + static_cast<std::ptrdiff_t>(context * 16 + 16), 0.0);
    for (std::size_t i = context * 16; i < context * 16 + 16; ++i)
      if (counts[i] > 0) entropy -= counts[i] * std::log(counts[i] / all);
  }
  EXPECT_NEAR(entropy / static_cast<double>(text.size()), 1.2080, 0.003);
}

TEST(Tokens, RanksShareTheSequencesOfABatch) {
  auto const dataset = load_dataset({.dataset = "synthetic-text", .seq_len = 16, .subset = 40});
  Loader whole(dataset, {}, {.seed = 3, .global_batch = 8, .end_step = 3}, nullptr);
  Loader half(dataset, {}, {.seed = 3, .global_batch = 8, .slice = {1, 2}, .end_step = 3}, nullptr);
  for (int step = 0; step < 3; ++step) {
    auto const all = *whole.next(), own = *half.next();
    EXPECT_EQ(own.size(), 4);
    EXPECT_EQ(own.first_slot, 4);
    EXPECT_TRUE(own.inputs.equal(all.inputs.narrow(0, 4, 4)));
    EXPECT_TRUE(own.labels.equal(all.labels.narrow(0, 4, 4)));
  }
}

}  // namespace
}  // namespace stratagem
