#include "strategy/fedavg/fedavg_plan.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "crypto/primitives.hpp"
#include "strategy/planned_strategy.hpp"
#include "support/decided.hpp"

namespace stratagem::test {
namespace {

StrategyPlan plan(FedAvgConfig const& fedavg, int ranks, OptimizerConfig const& optimizer = {},
                  PrecisionConfig const& precision = {}) {
  return plan_strategy(fedavg, test_model("lenet"), optimizer, precision, ranks);
}

template <class Act>
std::string refusal_of(Act act) {
  try {
    act();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "not refused";
}

std::string refusal(FedAvgConfig const& fedavg, int ranks, OptimizerConfig const& optimizer = {},
                    PrecisionConfig const& precision = {}) {
  return refusal_of([&] { static_cast<void>(plan(fedavg, ranks, optimizer, precision)); });
}

void expect_words(std::string const& text, char const* words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(FedavgPlan, DealsDrawnClientsToRanks) {
  EXPECT_EQ(plan({}, 4).shares.workers, 4);
  auto const shared = plan({.per_round = 12, .local_steps = 5, .micro_batches = 2}, 4);
  EXPECT_EQ(shared.shares.workers, 12);
  EXPECT_EQ(shared.placement.workers(), 4);
  EXPECT_EQ(shared.shares.micro_batches, 10) << "passes of a client in a round";
  EXPECT_EQ(shared.shares.batches_per_step, 5);
  EXPECT_EQ(decided<FedAvgPlan>(shared).clients_of_rank(), 3);
  EXPECT_EQ(decided<FedAvgPlan>(shared).passes_of_rank(), 30);
  EXPECT_TRUE(shared.shares_results());
  EXPECT_FALSE(shared.numbers.of_serial);
}

TEST(FedavgPlan, RefusesClientsThatCannotBeDrawnOrDealt) {
  expect_words(refusal({.per_round = 6}, 4), "6 clients on 4 ranks");
  expect_words(refusal({.per_round = 6}, 4), "a multiple of 4");
  expect_words(refusal({.clients = 5, .per_round = 6}, 1), "6 of 5 clients");
  expect_words(refusal({.clients = 2}, 4), "4 of 2 clients");
  expect_words(refusal({.split_alpha = 0.5}, 1), "only split: dirichlet has it");
  EXPECT_EQ(refusal({.split = Split::dirichlet, .split_alpha = 0.5}, 1), "not refused");
}

FedAvgConfig secure(int per_round, int neighbours = 0, int threshold = 0, int lost = 0) {
  return {.per_round = per_round,
          .secure = SecureSum::pairwise,
          .threshold = threshold,
          .neighbours = neighbours,
          .lost = lost};
}

TEST(FedavgPlan, RefusesLossesThatLeaveNobody) {
  expect_words(refusal({.per_round = 4, .lost = 4}, 2), "experiment.lost_clients: 4 of 4");
  expect_words(refusal({.per_round = 4, .lost = 4}, 2), "take at most 3");
  EXPECT_EQ(refusal({.per_round = 4, .lost = 3}, 2), "not refused");
  for (auto const& only : {FedAvgConfig{.threshold = 2}, FedAvgConfig{.neighbours = 2}})
    expect_words(refusal(only, 2), "only secure: pairwise has it");
}

TEST(FedavgPlan, RefusesSecureSumsThatCannotBe) {
  if (!crypto::available()) GTEST_SKIP() << "needs OpenSSL";
  expect_words(refusal(secure(1), 1), "pairwise with 1 client");
  for (auto const& [config, words] : std::initializer_list<std::pair<FedAvgConfig, char const*>>{
           {secure(12, 3), "strategy.neighbours: 3 of 12"},
           {secure(12, 12), "strategy.neighbours: 12 of 12"},
           {secure(12, 0, 6), "strategy.threshold: 6 of 12"},
           {secure(12, 0, 6), "take at least 7"},
           {secure(12, 0, 13), "take at most 12"},
           {secure(12, 4, 2), "strategy.threshold: 2 of 5"},
           {secure(12, 4, 6), "take at most 5"},
           {secure(12, 0, 0, 5), "strategy.threshold: 8 must answer"}})
    expect_words(refusal(config, 2), words);
  auto many = secure(256);
  many.clients = 300;
  expect_words(refusal(many, 2), "255 others");
  many.neighbours = 254;
  EXPECT_EQ(refusal(many, 2), "not refused");
  for (auto const& config :
       {secure(2), secure(12), secure(12, 0, 7, 5), secure(12, 10), secure(12, 4, 3, 9)})
    EXPECT_EQ(refusal(config, 2), "not refused");
}

TEST(FedavgPlan, RefusesWhatGoesByTheGradientsOfAll) {
  expect_words(refusal({}, 2, {.clip_norm = 1}), "optimizer.clip_norm");
  expect_words(refusal({}, 2, {.reduction = Reduction::sum}), "reduction: sum");
  expect_words(refusal({}, 2, {}, scaled_bf16), "precision.loss_scale");
}

/// 2^24 samples leave 8 bits.
TEST(FedavgPlan, RefusesWeightsThatLeaveNoBits) {
  auto const planned = plan({.per_round = 2}, 1);
  auto const check = [&](std::int64_t samples) {
    return refusal_of([&] { check_weights(decided<FedAvgPlan>(planned), samples); });
  };
  EXPECT_EQ(check(1 << 24), "not refused");
  auto const refused = check((1 << 24) + 1);
  expect_words(refused, "strategy.per_round: 2 clients with up to ");
  expect_words(refused, "leaves 7 for a change");
  expect_words(refused, "draw fewer clients");
}

TEST(FedavgPlan, SaysOnWhatItsNumbersDepend) {
  FedAvgConfig const usual{.per_round = 4};
  auto const base = plan(usual, 2);
  EXPECT_FALSE(base.numbers.choices.contains("experiment.lost_clients"));
  EXPECT_EQ(base.hash(), plan(usual, 2).hash());
  EXPECT_EQ(base.numbers.choices.at("strategy.local_steps"), "4");
  EXPECT_FALSE(base.numbers.choices.contains("strategy.split_alpha"));
  for (auto const change : std::initializer_list<void (*)(FedAvgConfig&)>{
           [](auto& c) { c.clients = 50; }, [](auto& c) { c.per_round = 8; },
           [](auto& c) { c.local_steps = 5; }, [](auto& c) { c.split = Split::shards; },
           [](auto& c) { c.split = Split::dirichlet; }, [](auto& c) { c.server_lr = 0.5; },
           [](auto& c) { c.server_momentum = 0.9; }, [](auto& c) { c.largest_change = 2; },
           [](auto& c) { c.lost = 1; }}) {
    auto other = usual;
    change(other);
    EXPECT_NE(plan(other, 2).hash(), base.hash());
  }
}

void expect_bytes_as_planned(Training const& training, int ranks) {
  auto const planned = plan_strategy(training.strategy, test_model(training.model),
                                     training.optimizer, training.precision, ranks);
  EXPECT_EQ(planned.traffic.bytes_sent, decided<FedAvgPlan>(planned).exchange_bytes);
  run_ranks(ranks, 1, [&](Communicator& communicator) {
    for (auto const sent : train(training, communicator).bytes_sent)
      EXPECT_EQ(sent, planned.traffic.bytes_sent) << training.model << ", " << ranks << " ranks";
  });
}

TEST(FedavgPlan, PromisesTheBytesThatAreSent) {
  for (auto const* model : {"lenet", "tiny_residual"})
    for (int const ranks : {1, 2, 4})
      for (auto const compute : {Precision::fp32, Precision::fp64})
        expect_bytes_as_planned({.model = model,
                                 .strategy = FedAvgConfig{.per_round = 4, .local_steps = 2},
                                 .precision = {.compute = compute},
                                 .steps = 3},
                                ranks);
}

TEST(FedavgPlan, PromisesTheBytesOfKeysAndShares) {
  if (!crypto::available()) GTEST_SKIP() << "needs OpenSSL";
  for (int const ranks : {1, 2, 4})
    for (auto const& config : {secure(4), secure(4, 2), secure(8, 4, 3, 2)})
      expect_bytes_as_planned({.model = "tiny_residual", .strategy = config, .steps = 2}, ranks);
  auto const bytes = [](FedAvgConfig const& config) { return plan(config, 2).traffic.bytes_sent; };
  auto plain = secure(4);
  plain.secure = SecureSum::none;
  // 68 of keys, 89 for each of 3 others, 42 for each of 4 members; of two clients to one rank.
  EXPECT_EQ(bytes(secure(4)) - bytes(plain), 2 * (68 + 3 * 89 + 4 * 42));
}

}  // namespace
}  // namespace stratagem::test
