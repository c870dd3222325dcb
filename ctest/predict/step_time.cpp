#include "predict/time/step_time.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "predict/forecast.hpp"
#include "predict/link.hpp"
#include "strategy/ddp/ddp_plan.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/local/local_plan.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/decided.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

/// Seconds of a cost that grows with the size: `seconds` for all parameters.
Curve in_proportion(std::int64_t size, double seconds) {
  return Curve({{static_cast<double>(size), seconds}});
}

/// LeNet under one strategy; a pass takes 3 s and 6 s, an update of all parameters 1 s.
class Planned {
 public:
  explicit Planned(StrategyConfig const& strategy, int ranks) {
    config_.run.threads = 1;
    config_.data = {.dataset = "synthetic-digits", .global_batch = 12, .subset = 120};
    config_.model = {.name = "lenet"};
    config_.strategy = strategy;
    model_ = make_model(config_.model, input_shape(config_));
    plan_ = make_run_plan(config_, model_, known_size(config_.data), ranks);
    elements = make_layout(model_).size();
    costs = {.forward_s = 3, .backward_s = 6, .optimizer_s = 1, .ranks_on_node = ranks};
  }

  StepTime step() const { return predict_step(plan_, model_, costs); }
  RunPlan& plan() { return plan_; }
  Model const& model() const { return model_; }
  Curve of_all(double seconds) const { return in_proportion(4 * elements, seconds); }

  std::int64_t elements = 0;
  StepCosts costs;

 private:
  RunConfig config_;
  Model model_;
  RunPlan plan_;
};

void expect_step(StepTime const& step, double compute_s, double exposed_s, double cores_s) {
  EXPECT_NEAR(step.compute_s, compute_s, 1e-6);
  EXPECT_NEAR(step.exposed_s, exposed_s, 1e-6);
  EXPECT_NEAR(step.cores_s, cores_s, 1e-6);
}

TEST(StepTime, SerialMakesThePassesOfAllRanks) {
  expect_step(Planned(SerialConfig{}, 1).step(), 10, 0, 0);
  expect_step(Planned(SerialConfig{.emulate_ranks = 2, .micro_batches = 3}, 1).step(), 55, 0, 0);
}

TEST(StepTime, DdpWaitsForAllOfASumThatNothingHides) {
  Planned one(DdpConfig{.overlap = false}, 2),
      micro(DdpConfig{.overlap = false, .micro_batches = 2}, 2);
  for (auto* planned : {&one, &micro}) {
    planned->costs.all_reduce = planned->of_all(2);
    planned->costs.optimizer_s = 0;
  }
  expect_step(one.step(), 9, 2, 0);
  expect_step(micro.step(), 18, 2, 0);
  // The update of each bucket goes on while the next is summed.
  auto const& buckets = decided<DdpPlan>(one.plan().strategy).buckets.buckets;
  auto const first =
      static_cast<double>(buckets.front().range.size()) / static_cast<double>(one.elements);
  one.costs.optimizer_s = 1;
  ASSERT_EQ(buckets.size(), 2U);
  expect_step(one.step(), 10, 2 * first, 0);
}

TEST(StepTime, OverlappedDdpWaitsForItsLastBucketAlone) {
  Planned one(DdpConfig{.bucket_mb = 0.05}, 2);
  one.costs.all_reduce = one.of_all(2);
  one.costs.optimizer_s = 0;
  auto const& buckets = decided<DdpPlan>(one.plan().strategy).buckets.buckets;
  ASSERT_GT(buckets.size(), 1U);
  auto const last =
      static_cast<double>(buckets.back().range.size()) / static_cast<double>(one.elements);
  expect_step(one.step(), 9, 2 * last, 0);
  // Slower than the pass: all buckets one after the other from when the first is ready.
  one.costs.all_reduce = one.of_all(2000);
  EXPECT_GT(one.step().exposed_s, 1990);
  EXPECT_LT(one.step().exposed_s, 2000);
}

constexpr Compression int8{.code = Code::int8};

TEST(StepTime, CodesTakeTimeOfTheThreadThatComputes) {
  Planned ddp(DdpConfig{.overlap = false, .compression = int8}, 2);
  CodecSpeed const speed{.encode = 4e-6, .decode = 2e-6, .decode_and_add = 1e-6};
  ddp.costs.codecs = {{Code::bf16, Rounding::nearest, {1, 1, 1}},
                      {Code::int8, Rounding::nearest, speed},
                      {Code::int8, Rounding::stochastic, {1, 1, 1}}};
  auto const bytes = static_cast<double>(4 * ddp.elements);
  expect_step(ddp.step(), 10 + bytes * speed.of_step(2), 0, 0);
  Planned serial(SerialConfig{.emulate_ranks = 2, .compression = int8}, 1);
  serial.costs.codecs = ddp.costs.codecs;
  expect_step(serial.step(), 2 * 9 + 1 + 3 * bytes * 6e-6, 0, 0);
}

TEST(StepTime, CodesAreSentToTheOwnersOfSlicesAndBack) {
  Planned ddp(DdpConfig{.overlap = false, .compression = int8}, 3);
  ddp.costs.codecs = {{Code::int8, Rounding::nearest, {}}};
  ddp.costs.exchange = ddp.of_all(1);
  ddp.costs.optimizer_s = 0;
  double wire = 0;
  for (auto const& piece : decided<DdpPlan>(ddp.plan().strategy).coded)
    wire += static_cast<double>(piece.wire);
  expect_step(ddp.step(), 9, 2 * 2 * wire / static_cast<double>(4 * ddp.elements), 0);
}

/// Of a few elements: all are looked at, and those that arrive are added.
TEST(StepTime, SparseCodesTakeTimeForAllElementsAndForThoseThatArrive) {
  for (auto const code : {Code::top_k, Code::random_k}) {
    Compression const compression{.code = code, .ratio = 0.1};
    Planned ddp(DdpConfig{.overlap = false, .compression = compression}, 3);
    ddp.costs.codecs = {{code, Rounding::nearest, {4e-6, 2e-6, 1e-6}}};
    auto const bytes = static_cast<double>(4 * ddp.elements);
    double taken = 0;
    for (auto const& message : decided<DdpPlan>(ddp.plan().strategy).sparse)
      taken += 4 * static_cast<double>(message.count);
    EXPECT_NEAR(taken, 0.1 * bytes, 0.01 * bytes);
    auto const arrive = code == Code::top_k ? 3 : 1;
    expect_step(ddp.step(), 10 + bytes * 6e-6 + arrive * taken * 1e-6, 0, 0);
    (code == Code::top_k ? ddp.costs.all_gather : ddp.costs.all_reduce) = ddp.of_all(1);
    ddp.costs.codecs = {{code, Rounding::nearest, {}}};
    ddp.costs.optimizer_s = 0;
    expect_step(ddp.step(), 9, (code == Code::top_k ? 3 * 2 * taken : taken) / bytes, 0);
    Planned serial(SerialConfig{.emulate_ranks = 3, .compression = compression}, 1);
    serial.costs.codecs = {{code, Rounding::nearest, {4e-6, 2e-6, 1e-6}}};
    expect_step(serial.step(), 28 + bytes * (3 * 4e-6 + 2e-6) + 3 * taken * 1e-6, 0, 0);
  }
}

/// Of matrices, whose factors are summed one after the other.
TEST(StepTime, FactorsTakeTimeForMatricesAndForTwoSums) {
  Compression const compression{.code = Code::low_rank, .error_feedback = true};
  Planned ddp(DdpConfig{.overlap = false, .compression = compression}, 2);
  ddp.costs.codecs = {{Code::low_rank, Rounding::nearest, {4e-6, 2e-6, 1e-6}}};
  double matrices = 0, first = 0, second = 0;
  for (auto const& bucket : decided<DdpPlan>(ddp.plan().strategy).low_rank) {
    matrices += 4 * static_cast<double>(bucket.matrix_elements());
    first += 4 * static_cast<double>(bucket.first);
    second += 4 * static_cast<double>(bucket.second);
  }
  expect_step(ddp.step(), 10 + matrices * 6e-6 + first * 1e-6, 0, 0);
  ddp.costs.codecs = {{Code::low_rank, Rounding::nearest, {}}};
  ddp.costs.optimizer_s = 0;
  ddp.costs.all_reduce = ddp.of_all(1);
  expect_step(ddp.step(), 9, (first + second) / static_cast<double>(4 * ddp.elements), 0);
  Planned serial(SerialConfig{.emulate_ranks = 2, .compression = compression}, 1);
  serial.costs.codecs = {{Code::low_rank, Rounding::nearest, {4e-6, 2e-6, 1e-6}}};
  expect_step(serial.step(), 19 + matrices * (2 * 4e-6 + 2e-6) + first * 1e-6, 0, 0);
}

TEST(StepTime, FsdpCodesGradientsOnTheirWayIntoShards) {
  Planned full(FsdpConfig{.unit_mb = 0.05, .overlap = false, .compression = int8}, 2);
  full.costs.codecs = {
      {Code::int8, Rounding::nearest, {.encode = 4e-6, .decode = 2e-6, .decode_and_add = 1e-6}}};
  full.costs.exchange = full.of_all(1);
  full.costs.optimizer_s = 0;
  auto const& plan = decided<FsdpPlan>(full.plan().strategy);
  double bytes = 0, wire = 0;
  for (int unit = 0; unit < plan.units(); ++unit) {
    bytes += static_cast<double>(plan.gradient_bytes(unit));
    for (auto const& chunk : plan.unit(unit).chunks)
      wire += static_cast<double>(plan.shard_code_bytes(chunk));
  }
  // Two halves: one that stays, and one that comes from the other rank.
  expect_step(full.step(), 9 + bytes * (4e-6 + (2e-6 + 1e-6) / 2),
              wire / static_cast<double>(4 * full.elements), 0);
}

TEST(StepTime, RanksThatShareACoreComputeOneAfterTheOther) {
  Planned one(DdpConfig{.overlap = false}, 2);
  one.costs.all_reduce = one.of_all(2);
  one.costs.optimizer_s = 0;
  one.costs.cores = 1;  // two passes, and a sum that was measured when each rank had half of it
  expect_step(one.step(), 9, 2, 2 * 9 + 2 - 11);
  one.costs.cores = 2;
  expect_step(one.step(), 9, 2, 0);
  one.costs.threads = 2;
  expect_step(one.step(), 9, 2, 2 * 9 + 2 - 11);
  one.costs.cores = 0;
  expect_step(one.step(), 9, 2, 0);
}

/// Which is slower than the cores of both, who need two passes and half a sum each.
TEST(StepTime, ALinkHoldsUpASumButNoCore) {
  Planned one(DdpConfig{.overlap = false}, 2);
  one.costs.all_reduce = one.of_all(2);
  one.costs.optimizer_s = 0;
  one.costs.cores = 1;
  Link link{.bandwidth = 4.0 * static_cast<double>(one.elements) / 7};
  one.costs = over_link(one.costs, link, 2);
  expect_step(one.step(), 9, 7, 2 * 9 + 2 - 16);
  link.bandwidth /= 2;
  one.costs = over_link(one.costs, link, 2);
  expect_step(one.step(), 9, 14, 0);
}

TEST(StepTime, LocalWaitsForAnExchangeEverySoManySteps) {
  auto const step = [](LocalConfig const& local) {
    Planned planned(local, 2);
    planned.costs.all_reduce = planned.of_all(2);
    return planned.step();
  };
  expect_step(step({.inner_steps = 1}), 10, 2, 0);
  expect_step(step({.inner_steps = 4}), 10, 0.5, 0);
  // Two workers of a rank make their passes in turn, and move three halves of the bytes.
  expect_step(step({.workers = 4, .inner_steps = 4}), 20, 0.75, 0);
  expect_step(step({.workers = 4, .inner_steps = 1}), 19, 3, 0);
}

/// All of the model takes 25 s; a step takes 10 s, and what an outer step adds.
TEST(StepTime, ADelayHidesAFragment) {
  auto const step = [](LocalConfig const& local) {
    Planned planned(local, 2);
    planned.costs.all_reduce = planned.of_all(25);
    return planned.step();
  };
  expect_step(step({.inner_steps = 4, .delay = 2}), 10, 5 / 4.0, 0);
  expect_step(step({.inner_steps = 4, .delay = 3}), 10, 0, 0);
  expect_step(step({.inner_steps = 4, .fragments = 2, .mixing_factor = 0.5}), 10, 25 / 4.0, 0);
  expect_step(step({.inner_steps = 4, .outer_lr = 0.7, .fragments = 2}), 10.25, 25 / 4.0, 0);
  Planned planned(LocalConfig{.inner_steps = 4, .fragments = 2}, 2);
  double exposed = 0;
  for (auto const& range : decided<LocalPlan>(planned.plan().strategy).fragments.ranges())
    exposed += std::max(
        0.0, 25.0 * static_cast<double>(range.size()) / static_cast<double>(planned.elements) - 10);
  ASSERT_GT(exposed, 1);
  ASSERT_LT(exposed, 15) << "both are hidden for a while";
  expect_step(step({.inner_steps = 4, .fragments = 2, .delay = 1}), 10, exposed / 4, 0);
  // Where a rank plays two workers, it waits for the sum at once.
  expect_step(step({.workers = 4, .inner_steps = 4, .delay = 3}), 20, 1.5 * 25 / 4, 0);
}

TEST(StepTime, GossipWaitsForMessagesOfItsNeighbours) {
  auto const step = [](GossipConfig const& gossip, int ranks) {
    Planned planned(gossip, ranks);
    planned.costs.message = planned.of_all(2);
    return planned.step();
  };
  expect_step(step({.graph = Graph::exponential}, 4), 10, 2, 0);
  expect_step(step({.graph = Graph::ring}, 4), 10, 4, 0);
  expect_step(step({.graph = Graph::complete}, 4), 10, 6, 0);
  expect_step(step({.graph = Graph::ring, .mix_every = 4}, 4), 10, 1, 0);
  // Of two workers on each of two ranks, one sends to the other rank, then both.
  expect_step(step({.workers = 4}, 2), 20, 3, 0);
}

/// Four steps of 9 s of passes and 1 s of update for each client, whose change takes as long to
/// code as an update; then the sum, and the server's own.
TEST(StepTime, FedAvgWaitsForOneSumInARound) {
  auto const step = [](FedAvgConfig const& fedavg) {
    Planned planned(fedavg, 2);
    planned.costs.all_reduce = planned.of_all(2);
    return planned.step();
  };
  expect_step(step({.local_steps = 4}), 4 * 10 + 1 + 1, 2, 0);
  expect_step(step({.per_round = 6, .local_steps = 4}), 3 * (4 * 10 + 1) + 1, 2, 0);
  expect_step(step({.local_steps = 1, .micro_batches = 2}), 19 + 1 + 1, 2, 0);
}

/// Three clients of a rank: key streams for 5 others and itself, and its own again; keys are agreed
/// on twice with each. Messages of six clients: keys, shares for 5, and revealed ones of 6.
TEST(StepTime, FedAvgCountsMasksAndTheirMessages) {
  Planned planned(FedAvgConfig{.per_round = 6, .local_steps = 1, .secure = SecureSum::pairwise}, 2);
  planned.costs.all_reduce = planned.of_all(2);
  planned.costs.all_gather = in_proportion(1000, 1);
  double const bytes = 4.0 * static_cast<double>(planned.elements);
  double const masks = 3 * ((6 + 1) * bytes * 0.25e-9 + 2 * 5 * 130e-6);
  expect_step(planned.step(), 3 * (10 + 1) + 1 + masks, 2 + 6 * (68 + 5 * 89 + 6 * 42) / 1000.0, 0);
}

TEST(StepTime, FsdpGathersAndScattersWhatItsPlanSays) {
  Planned zero1(FsdpConfig{.shard = Shard::optimizer, .unit_mb = 0.05, .overlap = false}, 2);
  auto const& plan = decided<FsdpPlan>(zero1.plan().strategy);
  ASSERT_GT(plan.units(), 1);
  zero1.costs.all_gather = zero1.of_all(2);
  zero1.costs.reduce_scatter = zero1.of_all(4);
  auto const padded =
      static_cast<double>(plan.shards.elements()) / static_cast<double>(zero1.elements);
  expect_step(zero1.step(), 9 + padded / 2, 6 * padded, 0);

  Planned full(FsdpConfig{.unit_mb = 0.05, .overlap = false}, 2);
  full.costs.all_gather = full.of_all(2);
  auto const& sharded = decided<FsdpPlan>(full.plan().strategy);
  double gathered = 0;
  for (int unit = 0; unit < sharded.units(); ++unit)
    gathered += static_cast<double>(sharded.parameter_bytes(unit)) *
                (sharded.stays_after_forward(unit) ? 1 : 2);
  expect_step(full.step(), 9 + padded / 2, 2 * gathered / static_cast<double>(4 * full.elements),
              0);
}

TEST(StepTime, GathersAheadHideBehindBlocks) {
  Planned full(FsdpConfig{.unit_mb = 0.05}, 2);
  full.costs.all_gather = full.of_all(0.01);
  full.costs.optimizer_s = 0;
  auto const plan = decided<FsdpPlan>(full.plan().strategy);
  // Every unit's but the first, which is gathered when the update is over.
  auto const first =
      0.01 * static_cast<double>(plan.parameter_bytes(0)) / static_cast<double>(4 * full.elements);
  expect_step(full.step(), 9, first, 0);
}

TEST(StepTime, ASyncServerTakesAllWorkersInTurn) {
  Planned one(PsConfig{}, 2), two(PsConfig{}, 3);
  for (auto* planned : {&one, &two}) {
    planned->costs.message = planned->of_all(0.5);
    planned->costs.push = in_proportion(planned->elements, 0.25);
  }
  expect_step(one.step(), 9, 0.5 + 0.25 + 0.5, 0);
  expect_step(two.step(), 9, 0.5 + 2 * 0.25 + 0.5, 0);
  two.costs.cores = 1;  // two passes, two pushes, four messages
  expect_step(two.step(), 9, 1.5, 2 * 9 + 2 * 0.25 + 4 * 0.5 - 10.5);
}

/// A worker codes, each push is read, and parameters come back as they are.
TEST(StepTime, PushesAreCodedByWorkersAndReadByServers) {
  Planned two(PsConfig{.compression = int8}, 3);
  two.costs.codecs = {{Code::int8, Rounding::nearest, {.encode = 4e-6, .decode = 2e-6}}};
  two.costs.message = two.of_all(0.5);
  two.costs.push = in_proportion(two.elements, 0.25);
  auto const bytes = static_cast<double>(4 * two.elements);
  auto const wire = 0.5 * 33 / 128;
  expect_step(two.step(), 9 + 4e-6 * bytes, wire + 2 * (0.25 + 2e-6 * bytes) + 0.5, 0);
}

TEST(StepTime, ADelayHidesTheServer) {
  Planned one(PsConfig{.mode = PsMode::delayed_sync}, 3);
  one.costs.message = one.of_all(0.5);
  one.costs.push = in_proportion(one.elements, 0.25);
  expect_step(one.step(), 9, 0, 0);
}

TEST(StepTime, AnAsynchronousServerCannotDoMoreThanAllOfItsTime) {
  Planned one(PsConfig{.mode = PsMode::async}, 3);
  one.costs.message = one.of_all(1);
  one.costs.push = in_proportion(one.elements, 1);
  expect_step(one.step(), 9, 3, 0);
  one.costs.push = in_proportion(one.elements, 20);
  expect_step(one.step(), 9, 2 * 20 - 9, 0);
}

TEST(StepTime, NobodyWaitsForWhatIsNotPulled) {
  for (auto const& [ps, part] :
       {std::pair(PsConfig{.mode = PsMode::async, .pull_every = 3}, 1.0 / 3),
        {PsConfig{.mode = PsMode::async, .pull_at_lag = 5}, 1.0 / 2}}) {
    Planned one(ps, 3);
    one.costs.message = one.of_all(1);
    one.costs.push = in_proportion(one.elements, 1);
    expect_step(one.step(), 9, 3 * part, 0);
    one.costs.cores = 1;  // three are awake; two pushes, two messages there and some back
    auto const path = 9 + 3 * part;
    expect_step(one.step(), 9, 3 * part, 3 * 9 + 2 * 1 + 2 * (1 + part) - path);
  }
}

TEST(StepTime, ChunksOfTheirOwnVersionsComeBackDuringThePass) {
  auto const exposed = [](ServerPolicy::Pulls pulls) {
    Planned one(PsConfig{.chunk_mb = 0.05, .mode = PsMode::async, .pulls = pulls}, 3);
    one.costs.message = one.of_all(0.5);
    one.costs.push = in_proportion(one.elements, 0.5);
    return one.step().exposed_s;
  };
  EXPECT_LT(exposed(ServerPolicy::Pulls::chunkwise),
            0.8 * exposed(ServerPolicy::Pulls::consistent));
}

TEST(StepTime, TwoPushesOfAShareAreTwoPasses) {
  Planned one(PsConfig{.mode = PsMode::modified}, 3);
  ASSERT_EQ(one.plan().strategy.shares.pushes, 2);
  expect_step(one.step(), 18, 0, 0);
  Planned micro(PsConfig{.micro_batches = 2}, 3);
  micro.costs.message = micro.of_all(0.5);
  expect_step(micro.step(), 18, 1, 0);
}

Calibration measured() {
  auto const kind = [](std::string const& model) {
    return PassKind{
        .model = model, .channels = 1, .memory_format = "contiguous", .precision = "fp32"};
  };
  auto lenet = kind("lenet");
  Planned const planned(DdpConfig{}, 2);
  lenet.channels =
      input_shape({.data = {.dataset = "synthetic-digits"}, .model = {.name = "lenet"}}).channels;
  lenet.memory_format =
      planned.model().memory_format == MemoryFormat::channels_last ? "channels_last" : "contiguous";
  return {.device = "a processor",
          .cores = 2,
          .passes = {{lenet, 1, Curve({{2, 1}, {4, 2}}), Curve({{2, 2}, {4, 4}}), 0.5},
                     {lenet, 2, Curve({{2, 2}, {4, 3}}), Curve({{2, 4}, {4, 6}}), 0.6}},
          .operations = {{"all_reduce", "mpi", 2, 2, Curve({{1000, 1}, {2000, 2}})}}};
}

TEST(StepTime, CostsAreThoseOfAsManyRanksAtOnce) {
  Planned two(DdpConfig{}, 2);
  auto const costs = step_costs(two.plan(), two.model(), measured());
  EXPECT_DOUBLE_EQ(costs.forward_s, 4) << "6 samples, beyond the last point";
  EXPECT_DOUBLE_EQ(costs.backward_s, 8);
  EXPECT_DOUBLE_EQ(costs.optimizer_s, 0.6);
  EXPECT_EQ(costs.cores, 2);
  Planned four(DdpConfig{}, 4);
  auto const shared = step_costs(four.plan(), four.model(), measured());
  EXPECT_DOUBLE_EQ(shared.forward_s, 2.5) << "3 samples; four ranks were not measured";
  EXPECT_EQ(shared.ranks_on_node, 4);
  // 2 (N-1)/N of the bytes: 1.5 for four ranks, 1 for two.
  EXPECT_DOUBLE_EQ(shared.all_reduce.at(1500).seconds, 1.5 * 1.5);
  Planned one(DdpConfig{}, 1);
  EXPECT_DOUBLE_EQ(step_costs(one.plan(), one.model(), measured()).all_reduce.at(1e9).seconds, 0);
}

std::string problem_of(Planned& planned, Calibration const& calibration) {
  Forecast forecast{planned.plan()};
  predict_time(forecast, planned.model(), calibration);
  EXPECT_FALSE(forecast.time);
  return forecast.time_problem;
}

TEST(StepTime, SaysWhatWasNotMeasured) {
  auto other = measured();
  for (auto& pass : other.passes) pass.kind.model = "mlp";
  Planned two(DdpConfig{}, 2);
  auto const problem = problem_of(two, other);
  for (auto const* words :
       {"no passes of lenet at 32 x 32, fp32, 1 thread", "it has mlp at 32", "stratagem calibrate"})
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
  Planned sharded(FsdpConfig{}, 2), served(PsConfig{}, 3);
  EXPECT_NE(problem_of(sharded, measured()).find("no all_gather"), std::string::npos);
  Planned coded(DdpConfig{.compression = int8}, 2);
  EXPECT_NE(problem_of(coded, measured()).find("no send_receive"), std::string::npos);
  auto without_codes = measured();
  without_codes.operations.front().operation = "send_receive";
  EXPECT_NE(problem_of(coded, without_codes).find("written in int8"), std::string::npos);
  EXPECT_NE(problem_of(served, measured()).find("no send_receive"), std::string::npos);
  Planned forced(DdpConfig{}, 2);
  forced.plan().config.run.device = DeviceChoice::cuda;
  EXPECT_NE(problem_of(forced, measured()).find("a processor"), std::string::npos);
}

TEST(StepTime, ARunIsItsStepsAndItsEvaluations) {
  Planned two(DdpConfig{}, 2);
  Forecast forecast{two.plan()};
  auto const& plan = forecast.plan;
  auto const& time = forecast.time;
  auto const& problem = forecast.time_problem;
  auto& run = forecast.plan.config.run;
  run.evaluate_every = 0;
  predict_time(forecast, two.model(), measured());
  ASSERT_TRUE(time) << problem;
  auto const step_s = time->step.total();
  EXPECT_DOUBLE_EQ(time->epoch_s, 10 * step_s);
  EXPECT_DOUBLE_EQ(time->run_s, static_cast<double>(plan.total_steps) * step_s);
  run.max_time_s = 30;
  predict_time(forecast, two.model(), measured());
  EXPECT_DOUBLE_EQ(time->run_s, 30);
  run.evaluate_every = 5;  // twice, in the ten epochs
  predict_time(forecast, two.model(), measured());
  EXPECT_DOUBLE_EQ(time->run_s, 30 + 2 * 4 * static_cast<double>(plan.images.test) / 12);
}

TEST(StepTime, ImagesAreWaitedForWhereReadingTakesLonger) {
  test::Scratch folder;
  std::filesystem::create_directory(folder / "train");
  auto calibration = measured();
  calibration.cores = 8;  // more than the ranks use
  for (auto& pass : calibration.passes) pass.kind.channels = 3;
  auto const waits = [&](double image_s, int threads) {
    calibration.reads = {{"flowers", 32, 2, image_s}};
    Planned two(DdpConfig{}, 2);
    Forecast forecast{two.plan()};
    forecast.plan.config.data.dataset = "flowers";
    forecast.plan.config.data.path = folder.path().string();
    forecast.plan.config.data.decode_threads = threads;
    forecast.plan.config.run.evaluate_every = 0;
    predict_time(forecast, two.model(), calibration);
    EXPECT_TRUE(forecast.time) << forecast.time_problem;
    auto const& step = forecast.time->step;
    EXPECT_DOUBLE_EQ(forecast.time->run_s,
                     static_cast<double>(forecast.plan.total_steps) * step.total());
    return std::pair(step.images_s, step.total() - step.images_s);
  };
  auto const step_s = waits(0.1, 1).second;
  EXPECT_EQ(waits(0.1, 1).first, 0);
  // Each rank has 6 images of a step.
  EXPECT_NEAR(waits(1000, 1).first, 6000 - step_s, 1e-9);
  EXPECT_NEAR(waits(2000, 2).first, 6000 - step_s, 1e-9);
  calibration.cores = 2;  // which both ranks need
  EXPECT_NEAR(waits(0.1, 1).first, 6 * 0.1, 1e-9);
}

TEST(StepTime, AWarmStartTakesStepsOfModeSync) {
  auto calibration = measured();
  calibration.operations.push_back(
      {"send_receive", "mpi", 2, 2, Curve({{1000, 0.1}, {2000, 0.2}})});
  for (auto const& [mode, seconds] : {std::pair(PsMode::sync, 2.0), {PsMode::async, 1.0}})
    calibration.servers.push_back(
        {std::string(policy_of({.mode = mode}, 2).work()), Curve({{1e6, seconds}})});
  auto const predicted = [&](PsConfig const& config) {
    Planned planned(config, 3);
    planned.plan().config.run.evaluate_every = 0;
    Forecast forecast{planned.plan()};
    predict_time(forecast, planned.model(), calibration);
    EXPECT_TRUE(forecast.time) << forecast.time_problem;
    return *forecast.time;
  };
  auto const sync = predicted({}), async = predicted({.mode = PsMode::async}),
             warm = predicted({.mode = PsMode::async, .warm_start = 7});
  ASSERT_NE(sync.step.total(), async.step.total());
  EXPECT_DOUBLE_EQ(warm.step.total(), async.step.total());
  EXPECT_NEAR(warm.run_s - async.run_s, 7 * (sync.step.total() - async.step.total()), 1e-9);
}

TEST(StepTime, ARequestIsAQuarterMoreAndFiveMinutes) {
  EXPECT_EQ(PredictedTime{}.lead_s(), 60);
  PredictedTime const slow{.step = {.compute_s = 10, .exposed_s = 2}, .save_s = 7};
  EXPECT_EQ(slow.lead_s(), 130) << "60 + 2 * (2 * 12 + 7) = 122";
  auto rarely = slow;
  rarely.sync_every = 4;
  EXPECT_EQ(rarely.lead_s(), 200) << "60 + 2 * (5 * 12 + 7) = 194";
  EXPECT_EQ(PredictedTime{.run_s = 0}.request(), "00:05:00");
  EXPECT_EQ(PredictedTime{.run_s = 3600}.request(), "01:20:00");
  EXPECT_EQ(PredictedTime{.run_s = 3601}.request(), "01:21:00");
  EXPECT_EQ(PredictedTime{.run_s = 400000}.request(), "138:59:00");
}

}  // namespace
}  // namespace stratagem
