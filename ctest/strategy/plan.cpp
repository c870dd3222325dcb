#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/serial/serial_world.hpp"
#include "conformance/training.hpp"
#include "strategy/ps/protocol/messages.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/ps/sync_server.hpp"
#include "strategy/ps/sync_worker.hpp"
#include "strategy/registry.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/decided.hpp"

namespace stratagem {
namespace {

using gpu::MemoryCategory;

constexpr MemoryCategory lasting[]{MemoryCategory::parameters, MemoryCategory::gradients,
                                   MemoryCategory::optimizer, MemoryCategory::buffers};

struct Case {
  char const* what;
  StrategyConfig strategy;
  OptimizerConfig optimizer = {};
  Precision compute = Precision::fp32;
};

constexpr double small = 1.0 / 1024;

Case const cases[]{
    {"serial", SerialConfig{}},
    {"serial without momentum", SerialConfig{}, {.rule = SgdConfig{.momentum = 0}}},
    {"serial in bf16", SerialConfig{}, {}, Precision::bf16},
    {"serial in fp64", SerialConfig{}, {}, Precision::fp64},
    {"emulator of 3", SerialConfig{.emulate_ranks = 3}},
    {"ddp", DdpConfig{}},
    {"emulator of 3 that codes",
     SerialConfig{.emulate_ranks = 3, .compression = {Code::int8, Rounding::nearest, true}}},
    {"ddp that codes", DdpConfig{.bucket_mb = small, .compression = {Code::int8}}},
    {"ddp that codes with feedback",
     DdpConfig{.bucket_mb = 0.05, .compression = {Code::sign, Rounding::nearest, true}}},
    {"emulator of 3 that sends the largest",
     SerialConfig{.emulate_ranks = 3,
                  .compression = {.code = Code::top_k, .error_feedback = true, .ratio = 0.1}}},
    {"emulator of 3 that corrects momentum",
     SerialConfig{.emulate_ranks = 3,
                  .compression = {.code = Code::random_k,
                                  .error_feedback = true,
                                  .momentum_correction = true}}},
    {"emulator of 3 that sends factors",
     SerialConfig{.emulate_ranks = 3,
                  .compression = {.code = Code::low_rank, .error_feedback = true}}},
    {"ddp that sends the largest",
     DdpConfig{.bucket_mb = small, .compression = {.code = Code::top_k, .ratio = 0.03}}},
    {"ddp that sends the largest with feedback",
     DdpConfig{.compression = {.code = Code::top_k, .error_feedback = true}}},
    {"ddp that sends random ones and corrects momentum",
     DdpConfig{.bucket_mb = 0.05,
               .compression = {.code = Code::random_k,
                               .error_feedback = true,
                               .momentum_correction = true}}},
    {"ddp that sends factors",
     DdpConfig{.bucket_mb = small,
               .compression = {.code = Code::low_rank, .error_feedback = true}}},
    {"ddp in bf16", DdpConfig{.bucket_mb = 0.01}, {}, Precision::bf16},
    {"emulator of 3 that sums micro-batches",
     SerialConfig{.emulate_ranks = 3, .micro_batches = 2, .accumulate = Accumulate::sharded}},
    {"local that averages gradients", LocalConfig{.inner_steps = 1}},
    {"local", LocalConfig{}},
    {"local without momentum", LocalConfig{}, {.rule = SgdConfig{.momentum = 0}}},
    {"six workers of local", LocalConfig{.workers = 6}},
    {"six workers of local whose fragments are under way",
     LocalConfig{.workers = 6, .outer_momentum = 0.9, .fragments = 2, .delay = 3}},
    {"six workers of local that keep some of their own",
     LocalConfig{.workers = 6, .fragments = 2, .mixing_factor = 0.5}},
    {"six workers of local that average gradients", LocalConfig{.workers = 6, .inner_steps = 1}},
    {"gossip", GossipConfig{}},
    {"gossip in fp64", GossipConfig{.graph = Graph::ring}, {}, Precision::fp64},
    {"six workers of gossip", GossipConfig{.workers = 6, .graph = Graph::star, .push_sum = true}},
    {"fedavg", FedAvgConfig{}},
    {"six clients of fedavg", FedAvgConfig{.per_round = 6}},
    {"fedavg with momentum", FedAvgConfig{.server_momentum = 0.9}},
    {"fedavg in fp64", FedAvgConfig{.server_momentum = 0.9}, {}, Precision::fp64},
    {"fedavg that sums securely",
     FedAvgConfig{.per_round = 6, .secure = SecureSum::pairwise, .neighbours = 2}},
    {"zero-1", FsdpConfig{.shard = Shard::optimizer, .unit_mb = small}},
    {"zero-1 in bf16",
     FsdpConfig{.shard = Shard::optimizer, .unit_mb = small},
     {},
     Precision::bf16},
    {"zero-2", FsdpConfig{.shard = Shard::gradients, .unit_mb = small}},
    {"zero-2 in bf16",
     FsdpConfig{.shard = Shard::gradients, .unit_mb = small},
     {},
     Precision::bf16},
    {"zero-3", FsdpConfig{.unit_mb = small}},
    {"zero-3 without momentum", FsdpConfig{.unit_mb = small}, {.rule = SgdConfig{.momentum = 0}}},
    {"zero-3 in bf16", FsdpConfig{.unit_mb = small, .prefetch = 2}, {}, Precision::bf16},
    {"zero-3 that keeps units", FsdpConfig{.unit_mb = small, .prefetch = 0, .keep_units = 1}},
    {"zero-1 that codes", FsdpConfig{.shard = Shard::optimizer,
                                     .unit_mb = small,
                                     .compression = {Code::int8, Rounding::nearest, true}}},
    {"zero-3 that codes", FsdpConfig{.unit_mb = small, .compression = {Code::bf16}}},
    {"zero-1 that gathers codes",
     FsdpConfig{.shard = Shard::optimizer, .unit_mb = small, .parameter_compression = Code::int8}},
    {"zero-3 that gathers codes",
     FsdpConfig{.unit_mb = small, .keep_units = 1, .parameter_compression = Code::int4}},
    {"zero-3 in bf16 that gathers codes",
     FsdpConfig{.unit_mb = small, .parameter_compression = Code::int8},
     {},
     Precision::bf16},
    {"emulator of 3 that reads parameters of codes",
     SerialConfig{.emulate_ranks = 3, .parameter_compression = Code::int8}},
    {"emulator in bf16 that reads parameters of codes",
     SerialConfig{.parameter_compression = Code::int8},
     {},
     Precision::bf16},
    {"emulator of 3 that codes no sums",
     SerialConfig{.emulate_ranks = 3,
                  .compression = {Code::int8, Rounding::nearest, true},
                  .compressed_sums = false}},
    {"emulator of 4 in 2 groups", SerialConfig{.emulate_ranks = 4, .groups = 2}},
    {"emulator of 2 groups of one", SerialConfig{.emulate_ranks = 2, .groups = 2}},
    {"emulator of 2 groups that accumulate",
     SerialConfig{
         .emulate_ranks = 4, .groups = 2, .micro_batches = 2, .accumulate = Accumulate::sharded}},
    {"zero-3 that accumulates", FsdpConfig{.unit_mb = small, .micro_batches = 2}},
    {"zero-3 that accumulates whole gradients",
     FsdpConfig{.unit_mb = small, .accumulate = Accumulate::unsharded, .micro_batches = 2}},
    {"zero-3 that reduces in bf16",
     FsdpConfig{.unit_mb = small, .reduce = ReduceType::compute},
     {},
     Precision::bf16},
};

/// What making the strategy added to the live bytes, once it was known how much that is.
gpu::MemoryUse allocated(Case const& of, Model const& model, World& world) {
  trace::Recorder recorder({}, 0);
  auto const before = gpu::live_memory({});
  auto const member = make_member(of.strategy, {.model = model,
                                                .world = world,
                                                .recorder = recorder,
                                                .device = {},
                                                .optimizer = of.optimizer,
                                                .precision = {.compute = of.compute}});
  auto use = gpu::live_memory({});
  for (std::size_t i = 0; i < gpu::memory_categories; ++i) use.bytes[i] -= before.bytes[i];
  return use;
}

void expect_planned(Case const& of, Model const& model, World& world) {
  auto& communicator = world.all();
  auto const plan =
      plan_strategy(of.strategy, model, of.optimizer, {.compute = of.compute}, communicator.size());
  auto const use = allocated(of, model, world);
  for (auto const category : lasting)
    EXPECT_EQ(plan.memory[category], use[category])
        << of.what << ", " << model.name << ", " << communicator.size() << " ranks, "
        << gpu::memory_category_names[static_cast<std::size_t>(category)];
}

TEST(Plan, PromisesTheBytesThatAStrategyAllocates) {
  SerialWorld world({});
  for (auto const* name : {"lenet", "tiny_residual", "tiny_odd"})
    for (auto const& each : cases) expect_planned(each, test::test_model(name), world);
}

/// Ranks take turns, and a rank's turn lasts from one wait to the next: what one allocates between
/// two is not mixed with others', and no strategy waits while it is made.
TEST(Plan, PromisesTheBytesThatEachOfSeveralRanksAllocates) {
  for (int const ranks : {2, 3})
    for (auto const& each : cases) {
      if (std::holds_alternative<SerialConfig>(each.strategy)) continue;
      auto const model = test::test_model("tiny_residual");
      run_worlds(ranks, 1, [&](World& world) { expect_planned(each, model, world); });
    }
}

/// Ranks wait for each other while groups form, so their bytes are counted together.
TEST(Plan, PromisesTheBytesThatReplicasAllocate) {
  auto const model = test::test_model("tiny_residual");
  for (auto const& [ranks, replicas] : {std::pair(4, 2), {6, 2}, {2, 2}})
    for (auto const& config :
         {FsdpConfig{.shard = Shard::optimizer, .replicas = replicas, .unit_mb = small},
          FsdpConfig{.shard = Shard::gradients, .replicas = replicas, .unit_mb = small},
          FsdpConfig{.replicas = replicas, .unit_mb = small, .micro_batches = 2}}) {
      auto const plan = plan_strategy(config, model, {}, {}, ranks);
      auto const before = gpu::live_memory({});
      gpu::MemoryUse use;
      run_worlds(ranks, 1, [&](World& world) {
        trace::Recorder recorder({}, 0);
        auto const member = make_member(config, {.model = model,
                                                 .world = world,
                                                 .recorder = recorder,
                                                 .device = {},
                                                 .optimizer = {},
                                                 .precision = {}});
        world.all().barrier().wait_on_host();
        if (world.all().rank() == 0) use = gpu::live_memory({});
        world.all().barrier().wait_on_host();
      });
      for (auto const category : lasting)
        EXPECT_EQ(ranks * plan.memory[category], use[category] - before[category])
            << ranks << " ranks, "
            << gpu::memory_category_names[static_cast<std::size_t>(category)];
    }
}

TEST(Plan, PromisesTheBytesOfEveryOptimizer) {
  auto const model = test::test_model("tiny_residual");
  SerialWorld alone({});
  for (auto const& optimizer : all_optimizers()) {
    auto const* what = name_of(optimizer).data();
    expect_planned({what, SerialConfig{.emulate_ranks = 2}, optimizer}, model, alone);
    for (auto const& strategy : std::initializer_list<StrategyConfig>{
             DdpConfig{}, FsdpConfig{.shard = Shard::optimizer, .unit_mb = small},
             FsdpConfig{.unit_mb = small}})
      run_worlds(3, 1, [&](World& world) {
        expect_planned({what, strategy, optimizer, Precision::bf16}, model, world);
      });
  }
}

StrategyConfig const sending[]{
    DdpConfig{.bucket_mb = 0.05},
    DdpConfig{.bucket_mb = 0.05, .compression = {Code::int8}},
    DdpConfig{.bucket_mb = small, .compression = {Code::sign, Rounding::nearest, true}},
    DdpConfig{.bucket_mb = small, .compression = {.code = Code::top_k, .ratio = 0.03}},
    DdpConfig{.bucket_mb = 0.05,
              .compression = {.code = Code::top_k, .error_feedback = true, .ratio = 1}},
    DdpConfig{.bucket_mb = small, .compression = {.code = Code::random_k, .ratio = 0.07}},
    DdpConfig{.bucket_mb = small, .compression = {.code = Code::low_rank, .error_feedback = true}},
    DdpConfig{.compression = {.code = Code::low_rank, .error_feedback = true, .matrix_rank = 4}},
    FsdpConfig{.shard = Shard::optimizer, .unit_mb = small},
    FsdpConfig{.shard = Shard::gradients, .unit_mb = small},
    FsdpConfig{.unit_mb = small},
    FsdpConfig{.shard = Shard::optimizer, .unit_mb = small, .compression = {Code::int4}},
    FsdpConfig{.unit_mb = small, .compression = {Code::sign, Rounding::nearest, true}},
    FsdpConfig{.shard = Shard::gradients, .unit_mb = small, .parameter_compression = Code::int8},
    FsdpConfig{.unit_mb = small, .compression = {Code::int8}, .parameter_compression = Code::int4},
    FsdpConfig{.unit_mb = small, .micro_batches = 2, .parameter_compression = Code::bf16},
    FsdpConfig{.unit_mb = small, .prefetch = 0},
    FsdpConfig{.unit_mb = small, .prefetch = 2, .keep_units = 1},
    FsdpConfig{.unit_mb = small, .reshard_after_forward = false},
    FsdpConfig{.unit_mb = small, .micro_batches = 3},
    FsdpConfig{.unit_mb = small, .prefetch = 2, .overlap = false, .micro_batches = 2},
    FsdpConfig{.unit_mb = small, .accumulate = Accumulate::unsharded, .micro_batches = 3}};

TEST(Plan, PromisesTheBytesThatAStepSends) {
  for (auto const* name : {"lenet", "tiny_residual"})
    for (auto const& strategy : sending) {
      auto const model = test::test_model(name);
      test::Training const training{.model = name, .strategy = strategy, .steps = 3};
      for (int const ranks : {1, 2, 4}) {
        auto const plan =
            plan_strategy(strategy, model, training.optimizer, training.precision, ranks);
        run_ranks(ranks, 1, [&](Communicator& communicator) {
          auto const sent = test::train(training, communicator).bytes_sent;
          // A step gathers for the next one what the step before gathered for it; the first has no
          // step before it.
          for (auto const step : {1U, 2U})
            EXPECT_EQ(sent[step], plan.traffic.bytes_sent)
                << name << ", strategy " << (&strategy - sending) << ", " << ranks << " ranks";
        });
      }
    }
}

TEST(Plan, PromisesTheBytesThatReplicasSend) {
  for (auto const& [ranks, replicas] : {std::pair(4, 2), {6, 2}, {6, 3}, {2, 2}})
    for (auto const& config :
         {FsdpConfig{.shard = Shard::optimizer, .replicas = replicas, .unit_mb = small},
          FsdpConfig{.replicas = replicas, .unit_mb = small},
          FsdpConfig{.replicas = replicas, .unit_mb = small, .micro_batches = 2}}) {
      test::Training training{.model = "tiny_residual", .strategy = config, .steps = 3};
      training.optimizer.clip_norm = 1;
      auto const plan = plan_strategy(config, test::test_model(training.model), training.optimizer,
                                      training.precision, ranks);
      run_worlds(ranks, 1, [&](World& world) {
        auto const sent = test::train(training, world).bytes_sent;
        for (auto const step : {1U, 2U})
          EXPECT_EQ(sent[step], plan.traffic.bytes_sent)
              << ranks << " ranks, " << replicas << " replicas";
      });
    }
}

/// 8 bytes for each of the largest, 4 for a random one, 4 r (m + n) for a matrix, but for what
/// makes these whole blocks; the rest as it is.
TEST(Plan, BytesOfCodesThatWriteNoBlocks) {
  auto const model = test::test_model("lenet");
  auto const layout = make_layout(model);
  std::int64_t taken = 0, factors = 0, rooms = 0;
  for (auto const& entry : layout.entries()) {
    auto const numel = entry.spec.numel(), m = entry.spec.shape.front(), n = numel / m;
    taken += (numel + 9) / 10;
    bool const is_matrix = entry.spec.shape.size() > 1 && 2 * (m + n) < m * n;
    factors += 4 * (is_matrix ? 2 * (m + n) : numel);
    rooms += is_matrix ? 2 : 1;
  }
  auto const sent = [&](Compression const& code, int ranks) {
    return plan_strategy(DdpConfig{.compression = code}, model, {}, {}, ranks).traffic.bytes_sent -
           all_reduce_bytes(status_room * 4, ranks);
  };
  EXPECT_EQ(sent({.code = Code::top_k, .ratio = 0.1}, 2), 8 * taken);
  EXPECT_EQ(sent({.code = Code::top_k, .ratio = 0.1}, 5), 4 * 8 * taken);
  EXPECT_NEAR(sent({.code = Code::random_k, .ratio = 0.1}, 2), 4 * taken, 8);
  auto const of_factors = sent({.code = Code::low_rank, .error_feedback = true}, 2);
  EXPECT_GE(of_factors, factors - 8);
  EXPECT_LE(of_factors, factors + rooms * 4 * (ParameterLayout::alignment - 1));
}

Compression const pushed[]{{}, {Code::int8}, {Code::sign, Rounding::nearest, true}};

/// Beside its lines, of which every server gets one.
TEST(Plan, PromisesTheBytesThatAWorkerPushes) {
  for (auto const& compression : pushed)
    for (auto const mode : {PsMode::sync, PsMode::async}) {
      PsConfig const ps{
          .servers = 2, .chunk_mb = 4 * small, .mode = mode, .compression = compression};
      test::Training const training{.model = "tiny_residual", .strategy = ps, .steps = 3};
      auto const plan = plan_strategy(ps, test::test_model(training.model), training.optimizer,
                                      training.precision, 4);
      auto const lines = ps.servers * static_cast<std::int64_t>(empty_message().nbytes());
      run_ranks(4, 1, [&](Communicator& communicator) {
        for (auto const sent : test::train(training, communicator).bytes_sent)
          EXPECT_EQ(sent, plan.traffic.bytes_sent + lines) << name_of(compression.code);
      });
    }
}

/// Servers are on the host, and hear of it.
TEST(Plan, CodesOfWorkersOnGpusAreRefusedOnAllRanks) {
  auto const model = test::test_model("tiny_residual");
  PsConfig const ps{.servers = 1, .compression = {Code::int8}};
  int refused = 0;  // ranks take turns
  run_worlds(3, 1, [&](World& world) {
    auto& communicator = world.all();
    trace::Recorder recorder({}, 0);
    bool const works = communicator.rank() < 2;
    try {
      static_cast<void>(
          make_member(ps, {.model = model,
                           .world = world,
                           .recorder = recorder,
                           .device = works ? gpu::Device{gpu::DeviceKind::cuda} : gpu::Device{},
                           .optimizer = {},
                           .precision = {}}));
    } catch (AgreedError const& error) {
      EXPECT_EQ(error.code(), ExitCode::environment);
      EXPECT_NE(std::string(error.what()).find("strategy.compression on a GPU"), std::string::npos);
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

/// As PromisesTheBytesThatEachOfSeveralRanksAllocates.
TEST(Plan, PromisesTheBytesThatWorkersAndServersAllocate) {
  auto const model = test::test_model("tiny_residual");
  for (auto const& compression : pushed) {
    PsConfig const ps{.servers = 2, .chunk_mb = 4 * small, .compression = compression};
    auto const plan = plan_strategy(ps, model, {}, {}, 5);
    run_worlds(5, 1, [&](World& world) {
      auto& communicator = world.all();
      trace::Recorder recorder({}, 0);
      StrategyParts const parts{.model = model,
                                .world = world,
                                .recorder = recorder,
                                .device = {},
                                .optimizer = {},
                                .precision = {}};
      auto const before = gpu::live_memory({});
      auto const server = plan.placement.seat_of(communicator.rank()).server;
      std::unique_ptr<Participant> member;
      if (server < 0)
        member = std::make_unique<SyncPsWorker>(decided<PsPlan>(plan), parts);
      else
        member = std::make_unique<SyncPsServer>(decided<PsPlan>(plan), parts);
      auto const now = gpu::live_memory({});
      std::int64_t held = 0;
      for (auto const category : lasting) {
        auto const own = now[category] - before[category];
        held += own;
        if (server < 0) {
          EXPECT_EQ(own, plan.memory[category])
              << name_of(compression.code) << ", "
              << gpu::memory_category_names[static_cast<std::size_t>(category)];
        }
      }
      if (server >= 0) {
        EXPECT_EQ(held, plan.servers.bytes[static_cast<std::size_t>(server)])
            << name_of(compression.code);
      }
    });
  }
}

TEST(Plan, WorkersAreRanksOrEmulated) {
  auto const model = test::test_model("lenet");
  auto const emulator =
      plan_strategy(SerialConfig{.emulate_ranks = 3, .micro_batches = 2}, model, {}, {}, 1);
  EXPECT_EQ(emulator.shares.workers, 3);
  EXPECT_EQ(emulator.shares.micro_batches, 2);
  EXPECT_EQ(emulator.traffic.bytes_sent, 0);
  EXPECT_EQ(plan_strategy(DdpConfig{}, model, {}, {}, 1000).shares.workers, 1000);
  try {
    plan_strategy(SerialConfig{}, model, {}, {}, 2);
    FAIL() << "serial is one process";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(Plan, GroupsAreEquallyManyWorkersWithoutCodes) {
  auto const model = test::test_model("lenet");
  for (auto const& [config, words] : std::initializer_list<std::pair<SerialConfig, char const*>>{
           {{.emulate_ranks = 4, .groups = 3}, "strategy.groups: 3 groups of 4 workers"},
           {{.emulate_ranks = 4, .groups = 3}, "take one of 1, 2, 4"},
           {{.emulate_ranks = 4, .groups = 2, .compression = {Code::int8}},
            "strategy.groups together with strategy.compression"}}) {
    try {
      plan_strategy(config, model, {}, {}, 1);
      FAIL() << "not refused: " << words;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
}

TEST(Plan, HashTellsBucketsApart) {
  auto const model = test::test_model("lenet");
  auto hash = [&](double bucket_mb) {
    return plan_strategy(DdpConfig{.bucket_mb = bucket_mb}, model, {}, {}, 2).hash();
  };
  EXPECT_EQ(hash(25), hash(25));
  EXPECT_NE(hash(25), hash(0.001));
}

}  // namespace
}  // namespace stratagem
