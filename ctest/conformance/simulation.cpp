#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "conformance/training.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/ps/server.hpp"
#include "strategy/state/model_layout.hpp"
#include "strategy/state/replicas.hpp"

// Whole trainings under simulated disorder: the order in which ranks go on, when what they send
// arrives, and, with every other seed, when one of them dies. STRATAGEM_SEEDS says how many seeds
// each strategy gets; STRATAGEM_SEED=<seed> makes one again.

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;
constexpr std::uint64_t usual_seeds = 30;

struct Variant {
  std::string name;
  StrategyConfig strategy;
  int ranks;

  bool asynchronous() const {
    auto const* ps = std::get_if<PsConfig>(&strategy);
    return ps != nullptr && ps->mode != PsMode::sync;
  }
  /// Workers know only their own steps.
  bool apart() const {
    auto const* local = std::get_if<LocalConfig>(&strategy);
    return std::holds_alternative<GossipConfig>(strategy) || (local && local->inner_steps > 1);
  }
  Training training() const {
    return {.model = "tiny_residual",
            .strategy = strategy,
            .steps = std::holds_alternative<LocalConfig>(strategy) ? 5
                     : asynchronous()                              ? 3
                                                                   : 2,
            .global_batch = 6,
            .steps_per_round = 2};
  }
  /// What one process does that emulates it.
  SerialConfig serial() const {
    SerialConfig serial;
    std::visit(
        [&](auto const& config) {
          if constexpr (requires { config.compression; }) serial.compression = config.compression;
          if constexpr (requires { config.parameter_compression; })
            serial.parameter_compression = config.parameter_compression;
        },
        strategy);
    serial.compressed_sums =
        std::holds_alternative<DdpConfig>(strategy) || !serial.compression.on();
    return serial;
  }
};

std::vector<Variant> const& variants() {
  using Transport = PsConfig::Transport;
  constexpr Compression int8{Code::int8, Rounding::stochastic, true}, sign{.code = Code::sign},
      top_k{.code = Code::top_k, .error_feedback = true, .ratio = 0.1},
      low_rank{.code = Code::low_rank, .error_feedback = true};
  static std::vector<Variant> const all{
      {"ddp", DdpConfig{.bucket_mb = kib}, 3},
      {"ddp_int8", DdpConfig{.bucket_mb = kib, .compression = int8}, 3},
      {"ddp_top_k", DdpConfig{.bucket_mb = kib, .compression = top_k}, 3},
      {"ddp_low_rank", DdpConfig{.bucket_mb = kib, .compression = low_rank}, 3},
      {"local", LocalConfig{.workers = 6, .inner_steps = 1}, 3},
      {"local_streaming",
       LocalConfig{.workers = 3,
                   .inner_steps = 4,
                   .outer_momentum = 0.9,
                   .fragments = 2,
                   .delay = 1,
                   .mixing_factor = 0.5},
       3},
      {"gossip", GossipConfig{.workers = 6, .graph = Graph::ring}, 3},
      {"gossip_push_sum",
       GossipConfig{.workers = 6, .graph = Graph::star, .push_sum = true, .mix_every = 2}, 3},
      {"fedavg", FedAvgConfig{.per_round = 6, .split = Split::shards, .server_momentum = 0.9}, 3},
      {"zero1", FsdpConfig{.shard = Shard::optimizer, .unit_mb = kib, .poison = true}, 3},
      {"zero2", FsdpConfig{.shard = Shard::gradients, .unit_mb = kib, .poison = true}, 3},
      {"zero3", FsdpConfig{.shard = Shard::full, .unit_mb = kib, .poison = true}, 3},
      {"zero3_sign", FsdpConfig{.unit_mb = kib, .compression = sign, .poison = true}, 3},
      {"zero3_int8_gathers",
       FsdpConfig{.unit_mb = kib, .parameter_compression = Code::int8, .poison = true}, 3},
      {"ps_sync", PsConfig{.servers = 2, .chunk_mb = 4 * kib}, 4},
      {"ps_sync_rma", PsConfig{.servers = 2, .chunk_mb = 4 * kib, .transport = Transport::rma}, 4},
      {"ps_sync_int8", PsConfig{.servers = 2, .chunk_mb = 4 * kib, .compression = int8}, 4},
      {"ps_async", PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::async}, 4},
      {"ps_async_int8",
       PsConfig{.servers = 2, .chunk_mb = 4 * kib, .mode = PsMode::async, .compression = int8}, 4},
      {"ps_async_rma",
       PsConfig{.chunk_mb = 4 * kib, .transport = Transport::rma, .mode = PsMode::async}, 3},
      {"ps_chunkwise",
       PsConfig{.servers = 2,
                .chunk_mb = 4 * kib,
                .mode = PsMode::ssp,
                .pulls = ServerPolicy::Pulls::chunkwise},
       4},
      {"ps_pull_at_lag", PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::async, .pull_at_lag = 4}, 4},
      {"ps_ssp", PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::ssp, .staleness = 1}, 4},
      {"ps_lag_cap", PsConfig{.chunk_mb = 4 * kib, .mode = PsMode::lag_cap, .lag_cap = 1}, 4},
  };
  return all;
}

/// Of what a rank has; what steps found is left out where each rank knows its own.
std::string result_of(Variant const& variant, Trained trained) {
  if (variant.apart()) trained.correct.clear();
  return fingerprint(trained);
}

/// What one process makes of it.
std::string expected_of(Variant const& variant) {
  if (variant.asynchronous()) return {};
  if (variant.apart() || std::holds_alternative<FedAvgConfig>(variant.strategy)) {
    SerialCommunicator alone({});
    return result_of(variant, train(variant.training(), alone));
  }
  int workers = variant.ranks;
  if (auto const* ps = std::get_if<PsConfig>(&variant.strategy)) workers -= ps->servers;
  if (auto const* local = std::get_if<LocalConfig>(&variant.strategy)) workers = local->workers;
  return emulated(variant.training(), workers, variant.serial());
}

/// How one rank ended.
struct End {
  std::optional<Error> error;
  Trained trained;
  std::optional<RoundCounts> counts;  ///< of a server
  std::optional<std::uint64_t> replica;
};

std::vector<End> run(Variant const& variant, std::uint64_t seed, std::optional<Death> death) {
  std::vector<End> ends(static_cast<std::size_t>(variant.ranks));
  try {
    run_ranks(
        variant.ranks, seed,
        [&](Communicator& communicator) {
          auto& end = ends[static_cast<std::size_t>(communicator.rank())];
          auto training = variant.training();
          training.after = [&](Participant& participant, Communicator&) {
            if (auto const* server = dynamic_cast<PsServer const*>(&participant))
              end.counts = server->counts();
            else
              end.replica = ReplicaHashes(participant.state().replicas).total();
          };
          try {
            end.trained = train(training, communicator);
          } catch (Error const& error) {
            end.error = error;
            throw;
          }
        },
        death);
  } catch (Error const&) {
    // The ends tell.
  }
  return ends;
}

/// Whatever was received, a result is the one result, and nobody ends for want of anything but a
/// peer.
void expect_right_or_lost(Variant const& variant, std::vector<End> const& ends,
                          std::string const& expected, std::optional<Death> const& death) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    auto const& end = ends[rank];
    if (end.error) {
      EXPECT_TRUE(death) << "rank " << rank << ": " << end.error->what();
      EXPECT_EQ(end.error->code(), ExitCode::peer_lost)
          << "rank " << rank << ": " << end.error->what();
    } else if (!variant.asynchronous() && !end.trained.parameters.empty()) {
      EXPECT_EQ(result_of(variant, end.trained), expected) << "rank " << rank;
    }
  }
}

/// Of an asynchronous training that came to its end.
void expect_invariants(Variant const& variant, std::vector<End> const& ends) {
  auto const training = variant.training();
  auto const& ps = std::get<PsConfig>(variant.strategy);
  int const workers = variant.ranks - ps.servers;
  auto const policy = policy_of(ps, workers);
  auto const pushes = training.steps * workers * policy.pushes;
  auto const plan =
      plan_ps(ps, make_layout(test_model(training.model)), variant.ranks, sizeof(float));
  std::int64_t made = 0;
  std::optional<std::uint64_t> replica;
  for (int rank = 0; rank < variant.ranks; ++rank) {
    auto const& end = ends[static_cast<std::size_t>(rank)];
    if (!end.counts) {
      made += static_cast<std::int64_t>(end.trained.losses.size());
      EXPECT_EQ(end.replica, replica ? replica : end.replica) << "workers end alike";
      replica = end.replica;
      continue;
    }
    auto const domains =
        version_domains(policy, plan.servers, plan.placement.seat_of(rank).server).size();
    EXPECT_EQ(end.counts->lags.total(), pushes * static_cast<std::int64_t>(domains))
        << "every push is treated once";
    std::int64_t late = 0;  // beyond the cap
    auto const& lags = end.counts->lags.counts();
    for (std::size_t lag = 0; lag < lags.size(); ++lag)
      if (policy.lag_cap > 0 && static_cast<std::int64_t>(lag) > policy.lag_cap) late += lags[lag];
    EXPECT_EQ(end.counts->dropped, late) << "dropped is what came too late";
    if (policy.gate == ServerPolicy::Gate::ssp) {
      // While a worker computes, each other goes from at most s behind it to at most s + 1 ahead.
      EXPECT_LE(end.counts->lags.most(), (workers - 1) * (2 * policy.staleness + 1));
    }
  }
  EXPECT_EQ(made, pushes) << "every share is worked on once";
}

/// A simulation that does not end is told of, too.
class Alarm {
 public:
  explicit Alarm(std::string text)
      : thread_([this, text = std::move(text)](std::stop_token const& stop) {
          std::unique_lock lock(mutex_);
          using namespace std::chrono_literals;
          ended_.wait_for(lock, stop, 60s, [] { return false; });
          if (stop.stop_requested()) return;
          std::cerr << "hangs: " << text << std::endl;
          std::abort();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

class Simulation : public testing::TestWithParam<Variant> {
 protected:
  /// Calls of rank 0's communicator in a whole run, and somewhat more.
  static std::int64_t most_calls(Variant const& variant) {
    std::int64_t calls = 16;
    while (run(variant, 0, Death{0, calls})[0].error) calls *= 2;
    return calls;
  }

  static void expect_seed_holds(Variant const& variant, std::uint64_t seed,
                                std::string const& expected, std::int64_t calls) {
    auto const replay = str("STRATAGEM_SEED=", seed,
                            " ctest/conformance/test_conformance --gtest_filter='*/Simulation.*/",
                            variant.name, "'");
    SCOPED_TRACE(replay);
    Alarm const alarm(replay);
    CounterRandom const random(seed, "death");
    std::optional<Death> death;
    if (seed % 2 == 1)
      death = {static_cast<int>(random.word(0) % static_cast<unsigned>(variant.ranks)),
               static_cast<std::int64_t>(random.word(1)) % calls};
    auto const ends = run(variant, seed, death);
    expect_right_or_lost(variant, ends, expected, death);
    bool const whole =
        std::ranges::none_of(ends, [](End const& end) { return end.error.has_value(); });
    if (whole && variant.asynchronous()) expect_invariants(variant, ends);
  }
};

TEST_P(Simulation, EndsRightOrInAnErrorWhateverHappens) {
  auto const& variant = GetParam();
  auto const number = [](char const* name) -> std::optional<std::uint64_t> {
    char const* const text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::stoull(text));
  };
  auto const expected = expected_of(variant);
  auto const calls = most_calls(variant);
  auto const only = number("STRATAGEM_SEED");
  auto const first = only.value_or(0);
  auto const end = only ? *only + 1 : number("STRATAGEM_SEEDS").value_or(usual_seeds);
  auto const began = monotonic_ns();
  for (auto seed = first; seed < end && !HasFailure(); ++seed)
    expect_seed_holds(variant, seed, expected, calls);
  std::cout << variant.name << ": " << end - first << " seeds in "
            << format_duration(static_cast<double>(monotonic_ns() - began) * 1e-9) << "\n";
}

INSTANTIATE_TEST_SUITE_P(All, Simulation, testing::ValuesIn(variants()),
                         [](auto const& info) { return info.param.name; });

}  // namespace
}  // namespace stratagem::test
