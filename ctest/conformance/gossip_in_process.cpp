#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/in_process.hpp"

namespace stratagem::test {
namespace {

Training residual(GossipConfig const& gossip, std::int64_t steps = 7) {
  return {.model = "tiny_residual", .strategy = gossip, .steps = steps};
}

/// Those from which a worker hears in a step, itself included, by the definition of the graph.
std::vector<std::size_t> heard_by(std::size_t worker, Graph graph, std::size_t workers,
                                  std::int64_t step) {
  std::vector<std::size_t> senders;
  for (std::size_t sender = 0; sender < workers; ++sender) {
    auto const way = (worker + workers - sender) % workers;
    auto const hop = std::size_t(1) << step % std::max<int>(std::ceil(std::log2(workers)), 1);
    bool const hears = graph == Graph::complete || way == 0 ||
                       (graph == Graph::ring ? way == 1 || way == workers - 1 : way == hop);
    if (hears) senders.push_back(sender);
  }
  return senders;
}

/// D-PSGD from its definition: serial trainings that go on from the mean over those whom each
/// hears. Own first, then by sender, in fp32, as each adds them.
NamedTensors mixed_serials(Training const& training, int workers, Graph graph) {
  NamedTensors mean;
  run_serials(training, workers, [&](std::int64_t step, std::vector<NamedTensors>& all) {
    if (step < 0) return;
    auto const before = all;
    for (std::size_t worker = 0; worker < all.size(); ++worker) {
      auto const senders = heard_by(worker, graph, all.size(), step);
      auto const share = static_cast<float>(1.0 / static_cast<double>(senders.size()));
      auto const kept = 1 - static_cast<double>(senders.size() - 1) * share;
      for (std::size_t i = 0; i < before[0].size(); ++i) {
        auto x = before[worker][i].second * kept;
        for (auto const sender : senders)
          if (sender != worker) x = x + before[sender][i].second * share;
        all[worker][i].second = x;
      }
    }
    mean = mean_of(all);
  });
  return mean;
}

TEST(GossipInProcess, IsSerialTrainingsThatMix) {
  for (auto const* model : {"tiny_residual", "tiny_odd"})
    for (auto const graph : {Graph::ring, Graph::exponential, Graph::complete})
      for (int const workers : {2, 3, 4, 6}) {
        Training const training{.model = model,
                                .strategy = GossipConfig{.workers = workers, .graph = graph},
                                .steps = 5};
        SerialCommunicator alone({});
        EXPECT_EQ(digest_of(train(training, alone).parameters),
                  digest_of(mixed_serials(training, workers, graph)))
            << model << ", " << workers << " workers on a " << name_of(graph) << " graph";
      }
}

TEST(GossipInProcess, OtherGraphsAreOtherNumbers) {
  auto const of = [](GossipConfig const& gossip) { return digest_alone(residual(gossip)); };
  auto const ring = of({.workers = 6, .graph = Graph::ring});
  EXPECT_EQ(ring, of({.workers = 6, .graph = Graph::ring}));
  EXPECT_NE(ring, of({.workers = 6, .graph = Graph::exponential}));
  EXPECT_NE(ring, of({.workers = 6, .graph = Graph::complete}));
  EXPECT_NE(ring, of({.workers = 6, .graph = Graph::ring, .mix_every = 2}));
}

TEST(GossipInProcess, OnRegularGraphsPushSumIsDPsgdBitForBit) {
  for (auto const graph : {Graph::ring, Graph::exponential, Graph::complete}) {
    GossipConfig plain{.workers = 6, .graph = graph}, push_sum = plain;
    push_sum.push_sum = true;
    auto const expected = digest_alone(residual(plain));
    run_ranks(3, 1, [&](Communicator& communicator) {
      EXPECT_EQ(digest_on(residual(push_sum), communicator), expected) << name_of(graph);
    });
  }
}

/// SGP from its definition, in fp64: serial trainings at z move x = w z, which is mixed as w is.
TEST(GossipInProcess, OnAStarPushSumIsItsDefinition) {
  constexpr std::size_t workers = 4;
  Training const training{
      .model = "tiny_odd",
      .strategy = GossipConfig{.workers = workers, .graph = Graph::star, .push_sum = true},
      .optimizer = {.lr = 0.02},
      .precision = {.compute = Precision::fp64},
      .steps = 6};
  auto const share = [&](std::size_t to, std::size_t from) {
    if (from == 0) return 1.0 / workers;
    return to == 0 || to == from ? 0.5 : 0.0;
  };
  std::vector<double> w(workers, 1);
  std::vector<NamedTensors> z;
  run_serials(training, workers, [&](std::int64_t step, std::vector<NamedTensors>& all) {
    if (step >= 0) {
      auto const before = std::exchange(w, std::vector<double>(workers, 0));
      auto const learned = all;
      for (std::size_t to = 0; to < workers; ++to) {
        for (std::size_t from = 0; from < workers; ++from) w[to] += share(to, from) * before[from];
        for (std::size_t i = 0; i < all[to].size(); ++i) {
          auto x = at::zeros_like(all[to][i].second);
          for (std::size_t from = 0; from < workers; ++from)
            x += share(to, from) *
                 (learned[from][i].second + (before[from] - 1) * z[from][i].second);
          all[to][i].second = x / w[to];
        }
      }
    }
    z = all;
  });
  SerialCommunicator alone({});
  auto const own = train(training, alone).parameters;
  EXPECT_LT(greatest_distance(own, mean_of(z)), 1e-12);
  EXPECT_GT(w[0], 1.5 * w[1]) << "they are not all 1";
  EXPECT_GT(greatest_distance(z[0], z[1]), 1e-4);
}

TEST(GossipInProcess, DoesNotDependOnRanksOrInterleaving) {
  for (auto const& gossip : {GossipConfig{.workers = 6},
                             GossipConfig{.workers = 6, .graph = Graph::ring, .mix_every = 2},
                             GossipConfig{.workers = 6, .graph = Graph::complete},
                             GossipConfig{.workers = 6, .graph = Graph::star, .push_sum = true}}) {
    expect_same_on_any_ranks(residual(gossip));
  }
}

TEST(GossipInProcess, OneWorkerIsSerial) {
  for (bool const push_sum : {false, true}) {
    auto const training = residual({.push_sum = push_sum, .mix_every = 3});
    SerialCommunicator alone({});
    EXPECT_EQ(fingerprint(train(training, alone)), emulated(training, 1));
  }
}

TEST(GossipInProcess, DoesNotDependOnWhereRoundsEnd) {
  for (auto const& gossip :
       {GossipConfig{.workers = 4},
        GossipConfig{.workers = 4, .graph = Graph::star, .push_sum = true, .mix_every = 3}}) {
    auto training = residual(gossip, 11);
    auto const expected = digest_alone(training);
    for (std::int64_t const steps : {1, 2, 4, 5}) {
      training.steps_per_round = steps;
      run_ranks(2, 1, [&](Communicator& communicator) {
        EXPECT_EQ(digest_on(training, communicator), expected) << steps;
      });
    }
  }
}

TEST(GossipInProcess, ComputesInBf16) {
  auto training = residual({.workers = 4, .graph = Graph::ring, .push_sum = true});
  training.precision = {.compute = Precision::bf16, .loss_scale = LossScale::none};
  auto const expected = digest_alone(training);
  run_ranks(2, 1, [&](Communicator& communicator) {
    EXPECT_EQ(digest_on(training, communicator), expected);
  });
}

/// It is told from neighbour to neighbour; those who hear it compute no more.
TEST(GossipInProcess, ANonFiniteLossEndsAllRanks) {
  for (auto const graph : {Graph::ring, Graph::exponential}) {
    Training training{.strategy = GossipConfig{.workers = 8, .graph = graph},
                      .optimizer = {.lr = 1e30}};
    expect_non_finite_loss(training, 4, "at step 1, of worker 0");
  }
}

/// Only rank 3 has one: the others name it, and not what they were handed.
TEST(GossipInProcess, WhoFailsIsNamedByAll) {
  Training training{.strategy = GossipConfig{.graph = Graph::ring}};
  run_worlds(6, 1, [&](World& world) {
    auto& communicator = world.all();
    auto const model = test_model(training.model);
    trace::Recorder recorder({}, 0);
    auto const member = make_member(training.strategy, parts_of(training, model, world, recorder));
    member.strategy->begin_round({});
    int const rank = communicator.rank();
    std::int64_t step = 0;
    try {
      for (; step < 9; ++step) {
        auto batch = training_batch(training, step, rank * training.global_batch / 6, 6);
        if (rank == 3 && step == 1) batch.inputs.fill_(INFINITY);
        static_cast<void>(member.strategy->step(batch, {.lr = 0.01}));
      }
      FAIL() << "rank " << rank;
    } catch (AgreedError const& error) {
      EXPECT_EQ(step, 3) << "the third mixing reaches the last of six";
      std::string const what = error.what();
      EXPECT_NE(what.find("rank 3: the loss is not finite at step 1, of worker 3"), what.npos)
          << what;
    }
  });
}

/// One that happens after the last mixing is found before anything is made of the parameters.
TEST(GossipInProcess, ANonFiniteLossIsFoundWhereARoundEnds) {
  Training const training{
      .strategy = GossipConfig{.mix_every = 1000}, .optimizer = {.lr = 1e30}, .steps = 3};
  run_ranks(2, 1, [&](Communicator& communicator) {
    EXPECT_THROW(train(training, communicator), AgreedError);
  });
}

/// What one rank asks for ends the round of all in the same step: on a ring of six the third.
TEST(GossipInProcess, RequestsReachAllInOneStep) {
  auto const training = residual({.graph = Graph::ring});
  run_worlds(6, 1, [&](World& world) {
    auto& communicator = world.all();
    auto const model = test_model(training.model);
    trace::Recorder recorder({}, 0);
    auto const member = make_member(training.strategy, parts_of(training, model, world, recorder));
    member.strategy->begin_round({});
    int const rank = communicator.rank();
    for (std::int64_t step = 0; step < 4; ++step) {
      auto const batch = training_batch(training, step, rank * training.global_batch / 6, 6);
      auto const result = member.strategy->step(
          batch, {.lr = 0.02, .requests = {.interrupt = rank == 4 && step >= 1}});
      EXPECT_EQ(result.requests.interrupt, step == 3) << "rank " << rank << ", step " << step;
      EXPECT_EQ(result.labels, training.global_batch / 6) << "its own";
    }
  });
}

/// The first number in a line.
double spread_of(std::string const& line) {
  auto const begin = line.find_first_of("0123456789");
  return begin == line.npos ? -1 : std::stod(line.substr(begin));
}

TEST(GossipInProcess, TellsHowFarWorkersAreApart) {
  auto const told = [](GossipConfig const& gossip, int ranks) {
    std::string line;
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      auto training = residual(gossip, 5);
      training.after = [&](Participant& participant, Communicator& all) {
        auto const own = participant.report();
        if (all.rank() == 0)
          line = own;
        else
          EXPECT_EQ(own, "");
      };
      static_cast<void>(train(training, communicator));
    });
    return line;
  };
  auto const complete = told({.workers = 6, .graph = Graph::complete}, 1);
  auto const ring = told({.workers = 6, .graph = Graph::ring}, 1);
  EXPECT_EQ(told({.workers = 6, .graph = Graph::ring}, 3), ring);
  EXPECT_EQ(complete, "spread 0.000 %") << "each has the mean of all";
  EXPECT_GT(spread_of(ring), 0.01);
  EXPECT_GT(spread_of(told({.workers = 6, .mix_every = 1000}, 1)), 2 * spread_of(ring));
  EXPECT_EQ(told({.workers = 1}, 1), "");
}

}  // namespace
}  // namespace stratagem::test
