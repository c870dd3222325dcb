#include "strategy/gossip/gossip_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "strategy/gossip/mixer.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/decided.hpp"

namespace stratagem::test {
namespace {

StrategyPlan plan(GossipConfig const& gossip, int ranks, OptimizerConfig const& optimizer = {},
                  PrecisionConfig const& precision = {}) {
  return plan_strategy(gossip, test_model("lenet"), optimizer, precision, ranks);
}

std::string refusal(GossipConfig const& gossip, int ranks, OptimizerConfig const& optimizer = {},
                    PrecisionConfig const& precision = {}) {
  try {
    static_cast<void>(plan(gossip, ranks, optimizer, precision));
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "not refused";
}

TEST(GossipPlan, RefusesWhatGoesByTheGradientsOfAll) {
  EXPECT_NE(refusal({}, 2, {.clip_norm = 1}).find("optimizer.clip_norm with strategy gossip"),
            std::string::npos);
  EXPECT_NE(refusal({}, 2, {.reduction = Reduction::sum}).find("reduction: sum"),
            std::string::npos);
  EXPECT_NE(refusal({}, 2, {}, scaled_bf16).find("precision.loss_scale"), std::string::npos);
  EXPECT_NE(refusal({.workers = 6}, 4).find("a multiple of 4"), std::string::npos);
}

TEST(GossipPlan, AMatrixWhoseRowsDoNotAddUpTo1TakesPushSum) {
  auto const star = refusal({.graph = Graph::star}, 3);
  EXPECT_NE(star.find("strategy.graph: star without push_sum"), std::string::npos) << star;
  EXPECT_NE(star.find("strategy.push_sum: true"), std::string::npos) << star;
  EXPECT_EQ(refusal({.graph = Graph::star, .push_sum = true}, 3), "not refused");
  EXPECT_EQ(refusal({.graph = Graph::star}, 2), "not refused") << "two workers hear each other";
  for (auto const graph : {Graph::ring, Graph::exponential, Graph::complete})
    for (int const workers : {1, 2, 3, 5, 8, 13})
      EXPECT_EQ(refusal({.workers = workers, .graph = graph}, 1), "not refused");
}

TEST(GossipPlan, SaysOnWhatItsNumbersDepend) {
  auto const ring = plan({.workers = 8, .graph = Graph::ring, .mix_every = 3}, 2);
  EXPECT_FALSE(ring.numbers.of_serial);
  EXPECT_FALSE(ring.shares_results());
  EXPECT_EQ(ring.shares.workers, 8);
  EXPECT_EQ(ring.sync_every, 4 * 3) << "until a request has gone half around";
  EXPECT_EQ(ring.saved.copies, 9);
  EXPECT_EQ(ring.numbers.choices.at("strategy.graph"), "ring");
  EXPECT_EQ(ring.numbers.choices.at("strategy.push_sum"), "false");
  EXPECT_EQ(ring.numbers.choices.at("strategy.mix_every"), "3");
  EXPECT_NE(ring.hash(), plan({.workers = 8, .mix_every = 3}, 2).hash());
  EXPECT_FALSE(plan({}, 2).shares_results()) << "a neighbour's message does not tell its loss";

  auto const alone = plan({.mix_every = 3}, 1);
  EXPECT_TRUE(alone.numbers.of_serial);
  EXPECT_TRUE(alone.shares_results());
  EXPECT_TRUE(alone.numbers.choices.empty());
  EXPECT_EQ(alone.traffic.bytes_sent, 0);
}

TEST(GossipPlan, SendsOnlyWhatANeighbourElsewhereHears) {
  auto const message = (make_layout(test_model("lenet")).size() + Mixer::tail) * 4;
  auto const sent = [&](GossipConfig const& gossip, int ranks) {
    auto const planned = plan(gossip, ranks);
    EXPECT_EQ(decided<GossipPlan>(planned).message_bytes, message);
    return std::pair(planned.traffic.bytes_sent, planned.traffic.most_bytes_sent);
  };
  EXPECT_EQ(sent({.graph = Graph::exponential}, 4), std::pair(message, message));
  EXPECT_EQ(sent({.graph = Graph::ring}, 4), std::pair(2 * message, 2 * message));
  EXPECT_EQ(sent({.graph = Graph::complete}, 4), std::pair(3 * message, 3 * message));
  EXPECT_EQ(sent({.graph = Graph::star, .push_sum = true}, 4),
            std::pair(6 * message / 4, 3 * message));
  EXPECT_EQ(sent({.workers = 8}, 1), std::pair(std::int64_t(0), std::int64_t(0)));
  EXPECT_EQ(sent({.workers = 8, .graph = Graph::ring}, 2), std::pair(2 * message, 2 * message));
  // Hops of 1, 2 and 4 leave a rank with 1, 2 and 4 messages.
  EXPECT_EQ(sent({.workers = 8}, 2), std::pair(7 * message / 3, 7 * message / 3));
  EXPECT_EQ(sent({.workers = 8, .graph = Graph::complete}, 2), std::pair(4 * message, 4 * message))
      << "once to a rank";
}

/// Of each rank, in each step.
TEST(GossipPlan, PromisesTheBytesThatAreSent) {
  for (auto const& gossip :
       {GossipConfig{.workers = 12}, GossipConfig{.workers = 12, .graph = Graph::ring},
        GossipConfig{.workers = 12, .graph = Graph::complete, .mix_every = 2},
        GossipConfig{.workers = 12, .graph = Graph::star, .push_sum = true}})
    for (int const ranks : {1, 2, 4, 12}) {
      Training const training{.model = "tiny_residual", .strategy = gossip, .steps = 8};
      auto const planned = plan_strategy(gossip, test_model(training.model), {}, {}, ranks);
      auto const& own = decided<GossipPlan>(planned);
      std::vector<std::int64_t> totals(static_cast<std::size_t>(ranks));
      run_ranks(ranks, 1, [&](Communicator& communicator) {
        auto const sent = train(training, communicator).bytes_sent;
        for (std::int64_t step = 0; step < training.steps; ++step) {
          auto const messages =
              own.mixes_after(step) ? own.sent_by(communicator.rank(), own.mixing_of(step)) : 0;
          EXPECT_EQ(sent[static_cast<std::size_t>(step)], messages * own.message_bytes)
              << "step " << step << " on rank " << communicator.rank() << " of " << ranks;
          totals[static_cast<std::size_t>(communicator.rank())] +=
              sent[static_cast<std::size_t>(step)];
        }
      });
      EXPECT_EQ(*std::ranges::max_element(totals) / training.steps,
                planned.traffic.most_bytes_sent);
      EXPECT_EQ(
          std::accumulate(totals.begin(), totals.end(), std::int64_t(0)) / (ranks * training.steps),
          planned.traffic.bytes_sent);
    }
}

}  // namespace
}  // namespace stratagem::test
