#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/serial/serial_world.hpp"
#include "conformance/in_process.hpp"
#include "crypto/primitives.hpp"
#include "strategy/fedavg/answers.hpp"
#include "strategy/pass/micro_batches.hpp"

namespace stratagem::test {
namespace {

constexpr FedAvgConfig skewed{.clients = 20,
                              .per_round = 6,
                              .local_steps = 3,
                              .split = Split::dirichlet,
                              .split_alpha = 2,
                              .server_lr = 0.7,
                              .server_momentum = 0.9};

Training residual(FedAvgConfig const& fedavg, std::int64_t rounds = 4) {
  return {.model = "tiny_residual", .strategy = fedavg, .steps = rounds};
}

StrategyPlan plan_on_one_rank(Training const& training) {
  return plan_strategy(training.strategy, test_model(training.model), training.optimizer,
                       training.precision, 1);
}

/// What a client makes of `begin`: a training of strategy serial of its own.
NamedTensors trained_client(Training training, NamedTensors const& begin, Batch const& share,
                            int local_steps) {
  training.strategy = SerialConfig{};
  auto const model = test_model(training.model);
  SerialWorld alone({});
  trace::Recorder recorder({}, 0);
  auto const member = make_member(training.strategy, parts_of(training, model, alone, recorder));
  if (!begin.empty()) {
    load(member.strategy->state(), State::parameters, model, {begin.begin(), begin.end()});
    member.strategy->state_replaced();
  }
  if (local_steps > 0)
    for (auto const& batch : split(share, local_steps))
      member.strategy->step(batch, {.lr = training.optimizer.lr});
  return gather(member.strategy->state(), State::parameters, model, all_tensors, alone.all());
}

/// Federated averaging from its definition, but for the rounding to integers, in fp64.
NamedTensors averaged_clients(Training const& training, bool weighted = true) {
  auto const& fedavg = std::get<FedAvgConfig>(training.strategy);
  auto const plan = plan_on_one_rank(training);
  auto parameters = trained_client(training, {}, {}, 0);  // the initial ones
  NamedTensors momentum;
  for (std::int64_t round = 0; round < training.steps; ++round) {
    NamedTensors mean;
    double weights = 0;
    for (auto const& [name, tensor] : parameters)
      mean.emplace_back(name, at::zeros_like(tensor, tensor.options().dtype(at::kDouble)));
    auto const answers = answers_of(plan.shares.workers, fedavg.lost, training_seed, round);
    for (int const place : answers.living) {
      auto const share = client_batch(training, plan, round, place);
      auto const& client = share.clients[static_cast<std::size_t>(place)];
      auto const after = trained_client(training, parameters, share, fedavg.local_steps);
      double const weight = weighted ? static_cast<double>(client.samples) : 1;
      weights += weight;
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i].second +=
            (after[i].second.to(at::kDouble) - parameters[i].second.to(at::kDouble)) * weight;
    }
    for (std::size_t i = 0; i < mean.size(); ++i) {
      auto change = mean[i].second / weights;
      if (round > 0) change += momentum[i].second * fedavg.server_momentum;
      mean[i].second = change;
      parameters[i].second = (parameters[i].second.to(at::kDouble) + change * fedavg.server_lr)
                                 .to(parameters[i].second.scalar_type());
    }
    momentum = mean;
  }
  return parameters;
}

NamedTensors trained_alone(Training const& training) {
  SerialWorld alone({});
  return train(training, alone).parameters;
}

TEST(FedavgInProcess, IsSerialTrainingsWhoseChangesAreAveraged) {
  for (auto const* model : {"tiny_residual", "tiny_odd"}) {
    auto training = residual(skewed);
    training.model = model;
    auto const own = trained_alone(training);
    EXPECT_LT(greatest_distance(own, averaged_clients(training)), 2e-5);
    EXPECT_GT(greatest_distance(own, averaged_clients(training, false)), 1e-4)
        << "weights count: the comparison can fail";
  }
}

TEST(FedavgInProcess, LostClientsAreInNeitherSum) {
  auto losing = skewed;
  losing.lost = 2;
  auto const own = trained_alone(residual(losing));
  EXPECT_LT(greatest_distance(own, averaged_clients(residual(losing))), 2e-5);
  EXPECT_GT(greatest_distance(own, averaged_clients(residual(skewed))), 1e-4)
      << "the lost count: the comparison can fail";
}

FedAvgConfig secured(FedAvgConfig fedavg, int neighbours, int threshold) {
  fedavg.secure = SecureSum::pairwise;
  fedavg.neighbours = neighbours;
  fedavg.threshold = threshold;
  return fedavg;
}

TEST(FedavgInProcess, SecureSumsDoNotDependOnRanksOrInterleaving) {
  if (!crypto::available()) GTEST_SKIP() << "needs OpenSSL";
  for (int const lost : {0, 2}) {
    auto plain = skewed;
    plain.lost = lost;
    auto const expected = digest_alone(residual(plain, 3));
    for (auto const& secure : {secured(plain, 0, 0), secured(plain, 4, 3)}) {
      EXPECT_EQ(digest_alone(residual(secure, 3)), expected);
      expect_same_on_any_ranks(residual(secure, 3));
    }
  }
}

/// Of three around each client all must answer, and half of all do not.
TEST(FedavgInProcess, TooFewAnswersEndAllRanksWithOneError) {
  if (!crypto::available()) GTEST_SKIP() << "needs OpenSSL";
  auto fedavg = secured(skewed, 2, 3);
  fedavg.lost = 3;
  for (int const ranks : {1, 2, 3})
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      try {
        static_cast<void>(train(residual(fedavg), communicator));
        ADD_FAILURE() << "not refused on rank " << communicator.rank();
      } catch (AgreedError const& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        std::string const what = error.what();
        for (auto const* words : {"the sum of round 0 stays masked: of the 3 clients",
                                  "strategy.threshold is 3", "lower experiment.lost_clients"})
          EXPECT_NE(what.find(words), what.npos) << what;
      }
    });
}

TEST(FedavgInProcess, DoesNotDependOnRanksOrInterleaving) {
  for (auto const& fedavg :
       {skewed, FedAvgConfig{.per_round = 6, .local_steps = 2, .split = Split::shards}}) {
    expect_same_on_any_ranks(residual(fedavg));
  }
}

TEST(FedavgInProcess, DoesNotDependOnHowRunsAreCut) {
  auto training = residual(skewed, 5);
  auto const expected = digest_alone(training);
  for (std::int64_t const rounds : {1, 2, 3}) {
    training.steps_per_round = rounds;
    EXPECT_EQ(digest_alone(training), expected) << rounds;
  }
}

/// All settings that say so change the numbers.
TEST(FedavgInProcess, SettingsAreHeard) {
  auto const usual = digest_alone(residual(skewed));
  EXPECT_EQ(digest_alone(residual(skewed)), usual);
  for (auto const change : std::initializer_list<void (*)(FedAvgConfig&)>{
           [](auto& c) { c.clients = 21; },
           [](auto& c) {
             c.split = Split::shards;
             c.split_alpha = 1;
           },
           [](auto& c) { c.split_alpha = 3; }, [](auto& c) { c.server_lr = 0.6; },
           [](auto& c) { c.lost = 1; }, [](auto& c) { c.server_momentum = 0.8; },
           [](auto& c) { c.largest_change = 1.0 / 64; }}) {
    auto other = skewed;
    change(other);
    EXPECT_NE(digest_alone(residual(other)), usual);
  }
}

/// A client's optimizer begins anew in each round: rounds of one step have no momentum.
TEST(FedavgInProcess, AClientsOptimizerBeginsAnew) {
  auto fedavg = skewed;
  fedavg.local_steps = 1;
  auto with = residual(fedavg);
  auto without = with;
  without.optimizer.rule = SgdConfig{.momentum = 0};
  EXPECT_EQ(digest_alone(with), digest_alone(without));
  fedavg.local_steps = 2;
  with.strategy = without.strategy = fedavg;
  EXPECT_NE(digest_alone(with), digest_alone(without));
}

/// Of a tiny range almost nothing fits; what does not is told of, once.
TEST(FedavgInProcess, ClippedChangesAreCountedAndToldOf) {
  for (double const largest : {1.0, 1e-6}) {
    auto fedavg = skewed;
    fedavg.largest_change = largest;
    run_ranks(2, 1, [&](Communicator& communicator) {
      auto training = residual(fedavg, 2);
      training.after = [&](Participant& participant, Communicator&) {
        auto const told = participant.report();
        bool const expected = largest < 1 && communicator.rank() == 0;
        EXPECT_EQ(told.find("changes were clipped: raise strategy.largest_change") != told.npos,
                  expected)
            << told;
        EXPECT_EQ(participant.report(), "") << "since the last call";
      };
      static_cast<void>(train(training, communicator));
    });
  }
}

TEST(FedavgInProcess, ANonFiniteLossEndsAllRanksAndNamesTheClient) {
  auto training = residual(skewed);
  training.optimizer.lr = 1e30;
  auto const plan = plan_on_one_rank(training);
  run_ranks(2, 1, [&](Communicator& communicator) {
    try {
      static_cast<void>(train(training, communicator));
      ADD_FAILURE() << "not refused on rank " << communicator.rank();
    } catch (AgreedError const& error) {
      EXPECT_EQ(error.code(), ExitCode::non_finite);
      std::string const what = error.what();
      EXPECT_NE(what.find("at step 0"), what.npos) << what;
      auto const first = client_batch(training, plan, 0, 0).clients.front().number;
      EXPECT_NE(what.find("client " + std::to_string(first)), what.npos) << what;
    }
  });
}

}  // namespace
}  // namespace stratagem::test
