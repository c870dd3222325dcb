#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"
#include "strategy/gossip/mixer.hpp"

namespace stratagem::test {
namespace {

constexpr std::int64_t numel = 31;

constexpr Graph graphs[]{Graph::ring, Graph::exponential, Graph::complete, Graph::star};

GossipPlan plan_of(Graph graph, int workers, int ranks) {
  return {.config = {.graph = graph, .push_sum = true},
          .neighbours = {graph, workers},
          .ranks = ranks,
          .inbox = ranks > 1 ? 2 : 0};
}

/// [workers, numel], equally large in all directions.
at::Tensor values_of(int workers, at::ScalarType type = at::kDouble) {
  auto const index = at::arange(workers * numel, at::kDouble).reshape({workers, numel});
  return (index.square() * 0.37).sin().to(type);
}

/// x [workers, numel] and weights [workers] after so many mixings.
struct Mixed {
  at::Tensor x;
  std::vector<double> weights;
};

Mixed mixed(Graph graph, int ranks, at::Tensor const& begin, std::int64_t mixings,
            std::int64_t first_mixing = 0) {
  auto const workers = static_cast<int>(begin.size(0));
  auto const plan = plan_of(graph, workers, ranks);
  Mixed all{at::zeros_like(begin), std::vector<double>(static_cast<std::size_t>(workers))};
  run_ranks(ranks, 3, [&](Communicator& communicator) {
    auto const buffer = [&] { return at::zeros({numel + Mixer::tail}, begin.options()); };
    std::vector<at::Tensor> x, messages, inbox;
    for (int i = 0; i < plan.inbox; ++i) inbox.push_back(buffer());
    auto const first = communicator.rank() * plan.workers_of_rank();
    for (int worker = first; worker < first + plan.workers_of_rank(); ++worker) {
      x.push_back(begin[worker].clone());
      messages.push_back(buffer());
    }
    Mixer mixer(plan, communicator, inbox);
    for (std::int64_t i = 0; i < mixings; ++i) mixer.mix(first_mixing + i, x, messages);
    for (std::size_t own = 0; own < x.size(); ++own) {
      all.x[first + static_cast<int>(own)].copy_(x[own]);
      all.weights[static_cast<std::size_t>(first) + own] = mixer.weights()[own];
    }
  });
  return all;
}

/// The matrix by the definition of its graph, in fp64.
at::Tensor matrix_of(Graph graph, int workers, std::int64_t mixing) {
  auto p = at::eye(workers, at::kDouble);
  auto const hears = [&](int worker, int sender) {
    if (worker != sender) p[worker][sender] = 1;
  };
  for (int i = 0; i < workers; ++i) {
    if (graph == Graph::ring) {
      hears((i + 1) % workers, i);
      hears(i, (i + 1) % workers);
    } else if (graph == Graph::exponential) {
      auto const levels = std::max(static_cast<int>(std::ceil(std::log2(workers))), 1);
      hears((i + (1 << mixing % levels)) % workers, i);
    } else if (graph == Graph::star) {
      hears(0, i);
      hears(i, 0);
    } else {
      for (int j = 0; j < workers; ++j) hears(i, j);
    }
  }
  return p / p.sum(0, /*keepdim=*/true);
}

/// The deviation of rows from their mean.
double distance(at::Tensor const& x) {
  return (x - x.mean(0, /*keepdim=*/true)).norm().item<double>();
}

TEST(GossipMixer, IsTheProductWithTheMatrixOfItsGraph) {
  for (auto const graph : graphs)
    for (int const workers : {1, 2, 3, 5, 6, 8}) {
      auto expected = values_of(workers);
      auto weights = at::ones({workers}, at::kDouble);
      for (std::int64_t mixing = 0; mixing < 5; ++mixing) {
        expected = matrix_of(graph, workers, mixing).mm(expected);
        weights = matrix_of(graph, workers, mixing).mv(weights);
      }
      auto const [x, own] = mixed(graph, 1, values_of(workers), 5);
      // Shares have 24 bits.
      EXPECT_LT((x - expected).abs().max().item<double>(), 1e-6) << name_of(graph) << workers;
      EXPECT_LT((at::tensor(own, at::kDouble) - weights).abs().max().item<double>(), 1e-6);
    }
}

TEST(GossipMixer, DoesNotDependOnRanks) {
  for (auto const graph : graphs)
    for (auto const type : {at::kFloat, at::kDouble}) {
      auto const [x, weights] = mixed(graph, 1, values_of(12, type), 5);
      for (int const ranks : {2, 3, 4, 6, 12}) {
        auto const [same, same_weights] = mixed(graph, ranks, values_of(12, type), 5);
        EXPECT_TRUE(same.equal(x)) << name_of(graph) << " on " << ranks << " ranks";
        EXPECT_EQ(same_weights, weights) << name_of(graph) << " on " << ranks << " ranks";
      }
    }
}

TEST(GossipMixer, ColumnsAddUpTo1Exactly) {
  for (auto const graph : graphs)
    for (int const workers : {1, 2, 3, 7, 8, 100, 1024}) {
      Neighbours const neighbours(graph, workers);
      for (int sender = 0; sender < std::min(workers, 9); ++sender) {
        double sum = 0;
        int listeners = 0;
        for (int worker = 0; worker < workers; ++worker) {
          sum += neighbours.weight(worker, sender, 1);
          listeners += neighbours.hears(worker, sender, 1) ? 1 : 0;
        }
        EXPECT_EQ(sum, 1) << name_of(graph) << workers;
        EXPECT_EQ(listeners, neighbours.listeners(sender)) << name_of(graph) << workers;
      }
    }
}

/// Who has heard of worker j, directly or not.
TEST(GossipMixer, AllHaveHeardOfAllWhenThePlanSays) {
  for (auto const graph : graphs)
    for (int workers = 2; workers <= 17; ++workers)
      for (int begin = 0; begin < Neighbours(graph, workers).period(); ++begin) {
        Neighbours const neighbours(graph, workers);
        auto heard = at::eye(workers, at::kDouble);
        auto const all = [&] { return heard.gt(0).all().item<bool>(); };
        for (int i = 0; i < neighbours.reach(); ++i) {
          EXPECT_FALSE(all()) << name_of(graph) << workers << ": sooner";
          heard = matrix_of(graph, workers, begin + i).mm(heard);
        }
        EXPECT_TRUE(all()) << name_of(graph) << workers;
      }
}

/// A ring of n has the second eigenvalue (1 + 2 cos(2 pi / n)) / 3: the slowest direction shrinks
/// by just that in every mixing, and none shrinks less.
TEST(GossipMixer, DistanceOnARingShrinksByTheSecondEigenvalue) {
  for (int const workers : {4, 5, 8, 16}) {
    auto const angle = 2 * std::numbers::pi / workers;
    auto const second = (1 + 2 * std::cos(angle)) / 3;
    auto const slowest = (at::arange(workers, at::kDouble) * angle).cos().unsqueeze(1) *
                         at::ones({1, numel}, at::kDouble);
    for (int const mixings : {1, 7}) {
      auto const left = distance(mixed(Graph::ring, 1, slowest, mixings).x) / distance(slowest);
      EXPECT_NEAR(left, std::pow(second, mixings), 1e-6) << workers;
      auto const any = values_of(workers);
      EXPECT_LE(distance(mixed(Graph::ring, 1, any, mixings).x),
                std::pow(second, mixings) * distance(any) + 1e-6)
          << workers;
    }
  }
}

/// Where all hear all the second eigenvalue is 0; of 2^k workers, hops of 1, 2, 4, ... make the
/// mean.
TEST(GossipMixer, AllHaveTheMeanAfterOneMixingOfAllOrOneOfEachHop) {
  EXPECT_LT(distance(mixed(Graph::complete, 1, values_of(6), 1).x), 1e-6);
  for (int const workers : {2, 4, 16}) {
    auto const levels = Neighbours(Graph::exponential, workers).period();
    for (int const first : {0, 1}) {
      EXPECT_LT(distance(mixed(Graph::exponential, 1, values_of(workers), levels, first).x), 1e-12);
      EXPECT_GT(distance(mixed(Graph::exponential, 1, values_of(workers), levels - 1, first).x),
                levels == 1 ? 0 : 0.1);
    }
  }
}

/// The rows of a star do not add up to 1: its workers agree on a mean that counts the centre more.
/// Divided by their weights they agree on the mean.
TEST(GossipMixer, PushSumFindsTheMeanWhereMixingAloneDoesNot) {
  for (int const workers : {3, 6}) {
    auto const begin = values_of(workers);
    auto const mean = begin.mean(0);
    auto const [x, weights] = mixed(Graph::star, 3, begin, 60);
    auto const w = at::tensor(weights, at::kDouble);
    EXPECT_NEAR(w.sum().item<double>(), workers, 1e-6) << "nothing is lost";
    EXPECT_LT((x.sum(0) - begin.sum(0)).abs().max().item<double>(), 1e-6);
    EXPECT_LT((x / w.unsqueeze(1) - mean).abs().max().item<double>(), 1e-6);
    EXPECT_GT((x - mean).abs().max().item<double>(), 0.1);
    // Of an undirected graph: as the shares into which workers divide what they have.
    EXPECT_NEAR(weights[0] / weights[1], workers / 2.0, 1e-6);
  }
}

TEST(GossipMixer, WeightsOfRegularGraphsStay1Exactly) {
  for (auto const graph : {Graph::ring, Graph::exponential, Graph::complete})
    for (auto const type : {at::kFloat, at::kDouble})
      for (auto const weight : mixed(graph, 3, values_of(12, type), 50).weights)
        EXPECT_EQ(weight, 1) << name_of(graph);
}

/// Whoever tells something, all act on it after the same mixing.
TEST(GossipMixer, TidingsReachAllAtOnce) {
  for (auto const graph : graphs)
    for (int const teller : {0, 2})
      for (int const told_before : {0, 1}) {
        auto const plan = plan_of(graph, 6, 3);
        auto const reach = plan.neighbours.reach();
        run_ranks(3, 1, [&](Communicator& communicator) {
          auto const buffer = [&] { return at::zeros({numel + Mixer::tail}, at::kFloat); };
          std::vector<at::Tensor> x{values_of(6)[0].to(at::kFloat), values_of(6)[1].to(at::kFloat)},
              messages{buffer(), buffer()};
          Mixer mixer(plan, communicator, {buffer(), buffer()});
          for (int mixing = 0; mixing < told_before + reach; ++mixing) {
            if (communicator.rank() == teller && mixing == told_before)
              mixer.tidings().tell({.save = true});
            if (communicator.rank() == 1 && mixing == told_before + 1) mixer.tidings().refuse();
            EXPECT_FALSE(mixer.tidings().requests().any()) << name_of(graph) << " " << mixing;
            mixer.mix(mixing, x, messages);
          }
          EXPECT_TRUE(mixer.tidings().requests().save)
              << name_of(graph) << " on rank " << communicator.rank();
          EXPECT_FALSE(mixer.tidings().requests().end());
          EXPECT_FALSE(mixer.tidings().refused()) << "which was told later";
        });
      }
}

}  // namespace
}  // namespace stratagem::test
