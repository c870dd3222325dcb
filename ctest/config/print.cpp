#include "config/print.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "config/support.hpp"

namespace stratagem {
namespace {

/// The values of all keys, as they are written.
std::vector<std::string> values(RunConfig config) {
  std::vector<std::string> all;
  for (auto const& key : keys_of(config, test::names()))
    all.push_back(key.path + "=" + key.value.get());
  return all;
}

std::string random_text(CounterRandom const& random, std::uint64_t trial, std::uint64_t key) {
  static std::vector<std::string> const pieces{"a",
                                               "Z",
                                               "0",
                                               " ",
                                               "  ",
                                               "\n",
                                               "\t",
                                               "\r",
                                               "\"",
                                               "'",
                                               "\\",
                                               "#",
                                               ": ",
                                               "- ",
                                               "{",
                                               "}",
                                               "[",
                                               ",",
                                               "&",
                                               "*",
                                               "!",
                                               "|",
                                               ">",
                                               "%",
                                               "@",
                                               "`",
                                               "~",
                                               "null",
                                               "true",
                                               "1e3",
                                               "$",
                                               "${",
                                               "$${",
                                               "}",
                                               "\x01",
                                               "\x04",
                                               "\x7f",
                                               "\xc2\x85",
                                               "\xc3\xa9",
                                               "\xe2\x80\xa8",
                                               "\xef\xbb\xbf",
                                               "\xef\xbf\xbf",
                                               "\xf0\x9f\x9a\x80"};
  std::string text;
  auto const length = random.word(0, trial * 1000 + key) % 12;
  for (std::uint32_t i = 1; i <= length; ++i)
    text += pieces[random.word(i, trial * 1000 + key) % pieces.size()];
  return text;
}

/// Some value of the key's type and range, by trying.
void set_randomly(Key const& key, CounterRandom const& random, std::uint64_t trial,
                  std::uint64_t number) {
  auto const bits = random.word64(number, trial);
  if (key.value.type == "text") {
    key.value.set({random_text(random, trial, number), true});
  } else if (key.value.type == path_type) {
    key.value.set({"/" + random_text(random, trial, number), true});
  } else if (key.value.type == "number") {
    key.value.set({shortest(std::ldexp(static_cast<double>(bits), -static_cast<int>(bits % 90)))});
  } else if (key.value.type == "integer") {
    key.value.set({std::to_string(bits >> (1 + bits % 63))});
  } else {
    auto const choices = split(key.value.type, '|');
    key.value.set({std::string(trim(choices[bits % choices.size()]))});
  }
}

TEST(Print, ReloadsToTheSameConfiguration) {
  CounterRandom const random(1, "print");
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    RunConfig config = test::parse(test::minimal);
    if (trial % 2 == 0) config.strategy = SerialConfig{};
    std::uint64_t number = 0;
    for (auto const& key : keys_of(config, test::names()))
      if (key.path != "strategy.name" && key.path != "optimizer.name")
        set_randomly(key, random, trial, ++number);
    // What the rules between keys refuse.
    config.data.batch_per_worker = trial % 3 == 0 ? 7 : 0;
    config.data.global_batch = trial % 3 == 0 ? 0 : 96;
    auto& sgd = std::get<SgdConfig>(config.optimizer.rule);
    sgd.nesterov = sgd.nesterov && sgd.momentum > 0;
    config.data.seq_len = 0;
    if (trial % 2 == 0) config.model.file = config.data.path = "";
    if (config.model.weights.empty()) config.model.head = HeadWeights::strict;
    config.model.frozen = config.model.frozen && !config.model.file.empty();
    if (config.model.file.empty() && config.model.num_classes == 0) config.model.num_classes = 10;
    if (config.run.name.empty()) config.run.name = "x";
    if (config.run.out.empty()) config.run.out = "y";
    auto const yaml = print_config(config);
    auto const reloaded = test::parse(yaml, {}, {{"STRATAGEM_DATA", "/elsewhere"}});
    ASSERT_EQ(values(reloaded), values(config)) << yaml;
    ASSERT_EQ(reloaded.expect, config.expect);
    ASSERT_EQ(reloaded.run.name, config.run.name);
    ASSERT_EQ(reloaded.data.root, config.data.root);
    ASSERT_EQ(print_config(reloaded), yaml);
  }
}

TEST(Print, WritesEveryKeyInItsSection) {
  auto const yaml = print_config(test::parse(test::minimal, {"expect.ranks=2"}));
  EXPECT_EQ(yaml.find("schema: 1\nrun:\n  name: \"lenet-ddp\"\n  seed: 1\n"), 0U);
  EXPECT_NE(yaml.find("\nexpect:\n  ranks: \"2\"\ndata:\n  dataset: mnist\n  root: \"\"\n"),
            std::string::npos);
  EXPECT_NE(yaml.find("\noptimizer:\n  name: sgd\n  lr: 0.01\n"), std::string::npos);
  EXPECT_NE(yaml.find("\nstrategy:\n  name: ddp\n  bucket_mb: 25\n  overlap: true\n"),
            std::string::npos);
}

}  // namespace
}  // namespace stratagem
