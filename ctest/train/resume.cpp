#include "train/checkpoint/resume.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "crypto/primitives.hpp"
#include "strategy/registry.hpp"
#include "strategy/state/counters.hpp"
#include "support/scratch.hpp"
#include "train/checkpoint/writer.hpp"

namespace stratagem::test {
namespace {

namespace fs = std::filesystem;
using Pulls = ServerPolicy::Pulls;

/// A strategy, and how many ranks it takes for so many workers.
struct Way {
  std::string name;
  StrategyConfig config;
  int ranks;
};

std::vector<Way> ways(int workers, int micro_batches = 1) {
  auto const whole = Accumulate::unsharded;
  std::vector<Way> all{
      {"serial", SerialConfig{.emulate_ranks = workers, .micro_batches = micro_batches}, 1},
      {"ddp", DdpConfig{.bucket_mb = 0.01, .micro_batches = micro_batches}, workers},
      {"zero1",
       FsdpConfig{.shard = Shard::optimizer, .accumulate = whole, .micro_batches = micro_batches},
       workers},
      {"zero3",
       FsdpConfig{.unit_mb = 1.0 / 1024, .accumulate = whole, .micro_batches = micro_batches},
       workers},
  };
  all.push_back({"ps", PsConfig{.chunk_mb = 0.01, .micro_batches = micro_batches}, workers + 1});
  return all;
}

/// Trains on `way.ranks` threads; what rank 0 has.
Trained train_on(Training training, Way const& way) {
  training.strategy = way.config;
  Trained result;
  run_worlds(way.ranks, 1, [&](World& world) {
    auto own = train(training, world);
    if (world.all().rank() == 0) result = std::move(own);
  });
  return result;
}

/// The same, saving after the last step; or beginning with what was saved.
Trained train_and_save(Training training, Way const& way, int workers, fs::path const& run) {
  training.strategy = way.config;
  Trained result;
  run_worlds(way.ranks, 1, [&](World& world) {
    auto& communicator = world.all();
    auto own = training;
    Log log(communicator.rank(), false, LogLevel::error);
    own.after = [&](Participant& participant, Communicator&) {
      auto const model = test_model(training.model);
      auto const plan = plan_strategy(training.strategy, model, training.optimizer,
                                      training.precision, communicator.size());
      CheckpointWriter writer({.config = {},
                               .run_directory = run,
                               .model = model,
                               .workers = workers,
                               .dealt = deal_tensors(model, plan.saved.holders),
                               .facts = {},
                               .communicator = communicator,
                               .log = log});
      writer.save({.step = training.steps}, participant);
      EXPECT_FALSE(writer.finish());
    };
    auto trained = train(own, world);
    if (communicator.rank() == 0) result = std::move(trained);
  });
  return result;
}

Trained go_on(Training training, Way const& way, int workers, fs::path const& run) {
  Log log(0, false, LogLevel::error);
  auto const checkpoint = newest_checkpoint(run, log);
  training.first_step = checkpoint->record().position.step;
  auto const model = test_model(training.model);
  training.before = [&](Participant& participant) {
    restore(*checkpoint, workers, model, participant);
  };
  return train_on(training, way);
}

void append_to(Trained& first, Trained const& second) {
  first.losses.insert(first.losses.end(), second.losses.begin(), second.losses.end());
  first.correct.insert(first.correct.end(), second.correct.begin(), second.correct.end());
  first.parameters = second.parameters;
  first.kept = second.kept;
  first.buffers = second.buffers;
}

/// Stops after `stop` steps `from` one way and goes on `to` another, with so many workers.
Trained in_two_parts(Training const& training, std::int64_t stop, Way const& from, Way const& to,
                     int workers) {
  Scratch const run;
  auto first_part = training;
  first_part.steps = stop;
  auto joined = train_and_save(first_part, from, workers, run.path());
  append_to(joined, go_on(training, to, workers, run.path()));
  return joined;
}

void expect_equal(NamedTensors const& a, NamedTensors const& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(a[i].second.equal(b[i].second)) << a[i].first;
  }
}

/// Stops anywhere and goes on under another strategy: the numbers do not tell.
void check_every_pair(Training training, int workers, std::vector<Way> const& all) {
  CounterRandom const random(training_seed, "where it stops");
  std::map<std::string, Trained> straight;
  for (auto const& way : all) straight[way.name] = train_on(training, way);
  std::uint64_t draw = 0;
  for (auto const& from : all)
    for (auto const& to : all) {
      auto const stop =
          static_cast<std::int64_t>(random.word64(draw++, static_cast<std::uint64_t>(workers)) %
                                    static_cast<std::uint64_t>(training.steps));
      SCOPED_TRACE(from.name + " " + std::to_string(stop) + " steps, " + to.name);
      auto const joined = in_two_parts(training, stop, from, to, workers);
      // The mean loss is added up in another type by each; all else is the same everywhere.
      auto losses = straight[to.name].losses;
      std::copy_n(straight[from.name].losses.begin(), stop, losses.begin());
      EXPECT_EQ(joined.losses, losses);
      EXPECT_EQ(fingerprint(joined), fingerprint(straight[to.name]));
    }
}

void check_every_pair(Training const& training, int workers, int micro_batches) {
  check_every_pair(training, workers, ways(workers, micro_batches));
}

TEST(Resume, EqualsATrainingThatNeverStopped) {
  Training training{.model = "tiny_residual", .steps = 9};
  for (int const workers : {1, 2, 3}) check_every_pair(training, workers, 1);
}

TEST(Resume, EqualsItWithAccumulationClippingAndNesterov) {
  Training training{.model = "tiny_odd", .steps = 7};
  training.optimizer.rule = SgdConfig{.nesterov = true};
  training.optimizer.clip_norm = 0.5;
  check_every_pair(training, 2, 2);
}

/// Groups have the numbers of the emulator in groups, and go on from what others left.
TEST(Resume, EqualsItInReplicas) {
  auto const fsdp = [](Shard shard) {
    return FsdpConfig{.shard = shard, .replicas = 2, .unit_mb = 1.0 / 1024};
  };
  SerialConfig const in_groups{.emulate_ranks = 4, .groups = 2};
  Training training{.model = "tiny_residual", .steps = 6};
  training.optimizer.rule = AdamwConfig{};
  std::vector<Way> const all{{"serial", in_groups, 1},
                             {"zero1", fsdp(Shard::optimizer), 4},
                             {"zero3", fsdp(Shard::full), 4}};
  check_every_pair(training, 4, all);
  auto const others = ways(4);
  auto const changed = [&](Way const& from, Way const& to) {
    return fingerprint(in_two_parts(training, 3, from, to, 4));
  };
  auto const into = changed(others[0], all[0]), out_of = changed(all[0], others[0]);
  for (auto const* other : {&others[1], &others[3]}) {
    EXPECT_EQ(changed(*other, all[2]), into) << other->name;
    EXPECT_EQ(changed(all[2], *other), out_of) << other->name;
  }
}

/// With what each keeps of parameters, and counts.
TEST(Resume, EqualsItUnderEveryOptimizer) {
  for (auto const& optimizer : all_optimizers()) {
    SCOPED_TRACE(name_of(optimizer));
    check_every_pair({.model = "tiny_odd", .optimizer = optimizer, .steps = 7}, 2, 1);
  }
}

TEST(Resume, KeepsTheLossScale) {
  Training training{.model = "tiny_odd", .steps = 8};
  training.precision = {.compute = Precision::bf16, .loss_scale = LossScale::dynamic};
  training.optimizer.clip_norm = 1;
  auto const counters = [&](Way const& way) {
    Scratch const run;
    auto first_part = training;
    first_part.steps = 5;
    static_cast<void>(train_and_save(first_part, way, 2, run.path()));
    Log log(0, false, LogLevel::error);
    return newest_checkpoint(run.path(), log)->record().counters;
  };
  for (auto const& way : {ways(2)[1], ways(2)[3], ways(2)[4]}) {
    auto const found = counters(way);
    EXPECT_EQ(found.at("loss_scale_good_steps"), 5) << way.name;
    auto const joined = in_two_parts(training, 3, way, way, 2);
    EXPECT_EQ(fingerprint(joined), fingerprint(train_on(training, way))) << way.name;
  }
}

/// Four workers on two ranks, stopped at an averaging of parameters and between two; it goes on
/// there, or on other ranks.
TEST(Resume, LocalWorkersGoOnFromWhatEachHasOfItsOwn) {
  Training const training{.model = "tiny_residual", .steps = 9};
  LocalConfig const local{
      .workers = 4, .inner_steps = 3, .begin_step = 1, .outer_lr = 0.7, .outer_momentum = 0.9};
  auto const straight = train_on(training, {"local", local, 2});
  for (std::int64_t const stop : {1, 4, 5, 6})
    for (int const ranks : {1, 2, 4}) {
      auto const joined =
          in_two_parts(training, stop, {"local", local, 2}, {"local", local, ranks}, 4);
      expect_equal(joined.parameters, straight.parameters);
      expect_equal(joined.buffers, straight.buffers);
      if (ranks == 2) {
        EXPECT_EQ(joined.losses, straight.losses);
      }
    }
}

/// Likewise, also where a fragment is under way, of which workers are ahead.
TEST(Resume, FragmentsArriveThatWereSentBefore) {
  Training const training{.model = "tiny_residual", .steps = 11};
  LocalConfig const local{.workers = 4,
                          .inner_steps = 6,
                          .begin_step = 1,
                          .outer_lr = 0.7,
                          .outer_momentum = 0.9,
                          .fragments = 2,
                          .delay = 2,
                          .mixing_factor = 0.5};
  for (int const from : {2, 4}) {
    auto const straight = train_on(training, {"local", local, from});
    for (std::int64_t const stop : {1, 4, 5, 6, 8})
      for (int const to : {1, 2, 4}) {
        auto const joined =
            in_two_parts(training, stop, {"local", local, from}, {"local", local, to}, 4);
        expect_equal(joined.parameters, straight.parameters);
        expect_equal(joined.kept, straight.kept);
        expect_equal(joined.buffers, straight.buffers);
      }
  }
}

/// Another strategy has sent nothing, though something would be under way: where all are is taken.
TEST(Resume, WorkersTakeWhereTheyAreOfWhatNobodySent) {
  Training training{.model = "tiny_odd", .steps = 4};
  training.optimizer.lr = 1e-6;
  Way const ddp{"ddp", DdpConfig{}, 2};
  Way const local{"local", LocalConfig{.inner_steps = 4, .delay = 2}, 2};
  auto const straight = train_on(training, ddp);
  training.steps = 7;
  for (auto const& [name, tensor] : in_two_parts(training, 4, ddp, local, 2).parameters) {
    auto const same =
        std::ranges::find(straight.parameters, name, &NamedTensors::value_type::first);
    EXPECT_LT((tensor - same->second).abs().max().item<double>(), 1e-4) << name;
  }
}

/// Likewise, between two mixings, with the weights of push-sum.
TEST(Resume, GossipWorkersGoOnFromWhatEachHasOfItsOwn) {
  Training const training{.model = "tiny_residual", .steps = 9};
  GossipConfig const gossip{.workers = 4, .graph = Graph::star, .push_sum = true, .mix_every = 2};
  auto const straight = train_on(training, {"gossip", gossip, 2});
  for (std::int64_t const stop : {1, 2, 5})
    for (int const ranks : {1, 2, 4}) {
      auto const joined =
          in_two_parts(training, stop, {"gossip", gossip, 2}, {"gossip", gossip, ranks}, 4);
      expect_equal(joined.parameters, straight.parameters);
      expect_equal(joined.buffers, straight.buffers);
    }
}

/// Stopped between any two rounds, it goes on there on other ranks: nothing is kept for a client.
TEST(Resume, FedAvgGoesOnWithAnyNumberOfRanks) {
  Training const training{.model = "tiny_residual", .steps = 5};
  FedAvgConfig const fedavg{.clients = 30,
                            .per_round = 4,
                            .local_steps = 2,
                            .split = Split::shards,
                            .server_lr = 0.7,
                            .server_momentum = 0.9};
  auto const straight = train_on(training, {"fedavg", fedavg, 2});
  for (std::int64_t const stop : {1, 3, 4})
    for (int const ranks : {1, 2, 4}) {
      auto const joined =
          in_two_parts(training, stop, {"fedavg", fedavg, 2}, {"fedavg", fedavg, ranks}, 4);
      expect_equal(joined.parameters, straight.parameters);
      expect_equal(joined.kept, straight.kept);
      expect_equal(joined.buffers, straight.buffers);
      EXPECT_EQ(joined.correct, straight.correct);
    }
  if (!crypto::available()) return;
  auto secured = fedavg;  // masks leave no bit, so they may come and go
  secured.secure = SecureSum::pairwise;
  expect_equal(
      in_two_parts(training, 3, {"fedavg", fedavg, 2}, {"fedavg", secured, 4}, 4).parameters,
      straight.parameters);
  expect_equal(
      in_two_parts(training, 2, {"fedavg", secured, 4}, {"fedavg", fedavg, 1}, 4).parameters,
      straight.parameters);
}

/// AdamW's count of updates among them.
TEST(Resume, WorkersThatStepOnTheirOwnKeepTheirOptimizers) {
  Training const training{
      .model = "tiny_odd", .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}}, .steps = 8};
  for (auto const& way : {Way{"local", LocalConfig{.workers = 4, .inner_steps = 3}, 2},
                          Way{"gossip", GossipConfig{.workers = 4}, 2}}) {
    SCOPED_TRACE(way.name);
    Scratch const run;
    auto first_part = training;
    first_part.steps = 4;
    static_cast<void>(train_and_save(first_part, way, 4, run.path()));
    expect_equal(go_on(training, way, 4, run.path()).parameters,
                 train_on(training, way).parameters);
  }
}

/// What a training of so many steps holds that begins with what was saved then.
std::map<std::string, NamedTensors> restored(Training training, Way const& way, int workers,
                                             fs::path const& run) {
  std::map<std::string, NamedTensors> held;
  training.after = [&](Participant& participant, Communicator& communicator) {
    auto const model = test_model(training.model);
    auto const state = participant.state();
    for (auto const& of : state.of_parameters) {
      auto tensors = gather(state, of.kind, model, all_tensors, communicator, of.worker);
      if (communicator.rank() == 0)
        held[of.kind + " " + std::to_string(of.worker)] = std::move(tensors);
    }
  };
  static_cast<void>(go_on(training, way, workers, run));
  return held;
}

TEST(Resume, WhatWorkersHaveOfTheirOwnIsAveragedForThoseWhoHaveItInCommon) {
  Training const training{.model = "tiny_odd", .steps = 4};
  Way const local{"local", LocalConfig{.inner_steps = 3}, 2}, ddp{"ddp", DdpConfig{}, 2};
  Scratch const run;
  static_cast<void>(train_and_save(training, local, 2, run.path()));
  auto const own = restored(training, local, 2, run.path());
  auto const common = restored(training, ddp, 2, run.path());
  auto const of_four = restored(training, {"local", LocalConfig{.workers = 4}, 2}, 4, run.path());
  ASSERT_EQ(own.size(), 5U) << "parameters of all; parameters and momentum of two workers";
  for (auto const* kind : {"parameters", "momentum"}) {
    auto const of = [&](std::string const& whose) { return own.at(kind + (" " + whose)); };
    auto mean = of("0");
    for (std::size_t i = 0; i < mean.size(); ++i) {
      EXPECT_FALSE(mean[i].second.equal(of("1")[i].second)) << "workers differ";
      mean[i].second = (mean[i].second + of("1")[i].second) * 0.5;
    }
    expect_equal(common.at(kind + std::string(" -1")), mean);
    expect_equal(of_four.at(kind + std::string(" 3")), mean);
  }
  expect_equal(own.at("parameters -1"), common.at("parameters -1"));
}

TEST(Resume, WorkersBeginWithWhatAllHadInCommon) {
  Training const training{.model = "tiny_odd", .steps = 4};
  Way const local{"local", LocalConfig{.inner_steps = 3}, 2}, ddp{"ddp", DdpConfig{}, 2};
  Scratch const run;
  static_cast<void>(train_and_save(training, ddp, 2, run.path()));
  auto const common = restored(training, ddp, 2, run.path());
  auto const own = restored(training, local, 2, run.path());
  for (auto const* worker : {" 0", " 1"})
    for (auto const* kind : {"parameters", "momentum"})
      expect_equal(own.at(kind + std::string(worker)), common.at(kind + std::string(" -1")));
}

/// Each asynchronous worker has its own; who knows only one takes the least.
TEST(Resume, KeepsTheLossScaleOfEachWorker) {
  Training training{.model = "tiny_odd", .precision = scaled_bf16, .steps = 4};
  training.counters = {{"loss_scale", 1024},
                       {"loss_scale_good_steps", 3},
                       {"loss_scale/1", 512},
                       {"loss_scale_good_steps/1", 7}};
  Way const async{"async", PsConfig{.chunk_mb = 0.01, .mode = PsMode::async}, 3};
  Scratch const run;
  static_cast<void>(train_and_save(training, async, 2, run.path()));
  Log log(0, false, LogLevel::error);
  auto const saved = newest_checkpoint(run.path(), log)->record().counters;
  EXPECT_EQ(saved.at("loss_scale/0"), 1024);
  EXPECT_EQ(saved.at("loss_scale/1"), 512);
  EXPECT_EQ(saved.at("loss_scale_good_steps/0") + saved.at("loss_scale_good_steps/1"), 3 + 7 + 8);
  EXPECT_EQ(saved.at("loss_scale"), 512);
  auto const after_resume = [&](Way const& way) {
    std::map<std::string, double> counters;
    auto again = training;  // no step is left to make
    again.counters.clear();
    // Ranks are threads that take turns; the last one's are those of all.
    again.after = [&](Participant& participant, Communicator& communicator) {
      counters = gather_counters(participant.state(), communicator);
    };
    static_cast<void>(go_on(again, way, 2, run.path()));
    return counters;
  };
  EXPECT_EQ(after_resume(async), saved);
  EXPECT_EQ(after_resume(ways(2)[4]).at("loss_scale"), 512);
  EXPECT_EQ(after_resume(ways(2)[1]).at("loss_scale"), 512);
}

/// Saved by N workers and loaded by M: the same tensors, and the mean of running statistics.
TEST(Resume, MovesToAnyNumberOfWorkers) {
  Training const training{.model = "tiny_residual", .steps = 3};
  for (int const before : {1, 2, 3, 4}) {
    auto const from = ways(before)[static_cast<std::size_t>(before)];
    Scratch const run;
    auto const saved = train_and_save(training, from, before, run.path());
    for (int const after : {1, 2, 3, 4})
      for (auto const& to : ways(after)) {
        SCOPED_TRACE(from.name + std::to_string(before) + " -> " + to.name + std::to_string(after));
        auto const loaded = go_on(training, to, after, run.path());
        expect_equal(loaded.parameters, saved.parameters);
        expect_equal(loaded.kept, saved.kept);
        if (before != after) continue;  // then the mean of means may round once more
        expect_equal(loaded.buffers, saved.buffers);
      }
  }
}

/// An asynchronous server's momenta keep their sum.
TEST(Resume, AsynchronousTrainingGoesOn) {
  for (auto const pulls : {Pulls::consistent, Pulls::chunkwise}) {
    Training training{.model = "tiny_odd", .steps = 6};
    Way const async{"dana", PsConfig{.chunk_mb = 0.01, .mode = PsMode::dana, .pulls = pulls}, 3};
    Scratch const run;
    auto const saved = train_and_save(training, async, 2, run.path());
    auto const loaded = go_on(training, async, 2, run.path());
    expect_equal(loaded.parameters, saved.parameters);
    for (std::size_t i = 0; i < saved.kept.size(); ++i)
      EXPECT_TRUE(loaded.kept[i].second.allclose(saved.kept[i].second, 1e-6, 1e-9));
    training.steps = 12;
    auto const more = go_on(training, async, 2, run.path());
    EXPECT_FALSE(more.parameters.front().second.equal(saved.parameters.front().second));
  }
}

/// A training of two workers and a server is saved and resumed: all comes back as it was. Returns
/// what was saved, and its counters.
std::pair<Trained, Counters> expect_comes_back(Training training, Way const& way) {
  Scratch const run;
  auto saved = train_and_save(training, way, 2, run.path());
  Log log(0, false, LogLevel::error);
  Counters counters = newest_checkpoint(run.path(), log)->record().counters;
  Counters loaded_counters;
  training.after = [&](Participant& participant, Communicator& communicator) {
    loaded_counters = gather_counters(participant.state(), communicator);
  };
  auto const loaded = go_on(training, way, 2, run.path());
  expect_equal(loaded.parameters, saved.parameters);
  expect_equal(loaded.kept, saved.kept);
  EXPECT_EQ(loaded_counters, counters);
  return {std::move(saved), std::move(counters)};
}

/// With what each worker's code has lost; under every strategy that codes no sums.
TEST(Resume, CodedTrainingGoesOnWithTheResidualsOfAll) {
  Compression const code{Code::sign, Rounding::stochastic, true};
  for (int const workers : {1, 2, 3}) {
    Training const training{.model = "tiny_residual", .steps = 7};
    Way const all[]{
        {"serial",
         SerialConfig{.emulate_ranks = workers, .compression = code, .compressed_sums = false}, 1},
        {"zero3", FsdpConfig{.unit_mb = 1.0 / 1024, .compression = code}, workers},
        {"ps", PsConfig{.servers = 2, .chunk_mb = 0.004, .compression = code}, workers + 2}};
    auto const straight = fingerprint(train_on(training, all[0]));
    for (auto const& from : all)
      for (auto const& to : all) {
        SCOPED_TRACE(str(from.name, " of ", workers, ", ", to.name));
        EXPECT_EQ(fingerprint(in_two_parts(training, 4, from, to, workers)), straight);
      }
  }
}

/// Ranks are threads that take turns; each knows its own.
TEST(Resume, AsynchronousTrainingKeepsItsResiduals) {
  Way const async{"async",
                  PsConfig{.chunk_mb = 0.01,
                           .mode = PsMode::async,
                           .compression = {Code::int4, Rounding::nearest, true}},
                  3};
  using ByWorker = std::map<int, at::Tensor>;
  auto const note = [](Participant& participant, ByWorker& residuals) {
    for (auto const& held : participant.state().of_parameters) {
      if (held.kind != Compression::residual || held.pieces.empty()) continue;
      std::vector<at::Tensor> pieces;
      for (auto const& piece : held.pieces) pieces.push_back(piece.terms.front());
      residuals[held.worker] = at::cat(pieces);
    }
  };
  ByWorker saved, loaded;
  Training training{.model = "tiny_odd", .steps = 6};
  training.between = [&](Participant& participant, std::int64_t) { note(participant, saved); };
  Scratch const run;
  static_cast<void>(train_and_save(training, async, 2, run.path()));
  training.after = [&](Participant& participant, Communicator&) { note(participant, loaded); };
  static_cast<void>(go_on(training, async, 2, run.path()));
  ASSERT_EQ(saved.size(), 2U);
  for (auto const& [worker, residual] : saved) {
    EXPECT_GT(residual.abs().sum().item<double>(), 0);
    EXPECT_TRUE(loaded.at(worker).equal(residual)) << worker;
  }
  EXPECT_FALSE(saved.at(0).equal(saved.at(1)));
}

/// What corrections of gradients keep comes back as it was.
TEST(Resume, AsynchronousTrainingKeepsItsCorrections) {
  for (auto const& ps :
       {PsConfig{.chunk_mb = 0.01, .mode = PsMode::dc_adaptive},
        PsConfig{.chunk_mb = 0.01, .mode = PsMode::gap_aware},
        PsConfig{.chunk_mb = 0.01, .mode = PsMode::gap_aware, .pulls = Pulls::chunkwise}}) {
    Training const training{.model = "tiny_odd", .steps = 6};
    Way const way{"corrected", ps, 3};
    auto const [saved, counters] = expect_comes_back(training, way);
    EXPECT_EQ(saved.kept.size(), 2 * saved.parameters.size()) << "with the momentum";
    EXPECT_EQ(counters.contains("step_square_weight"), ps.mode == PsMode::gap_aware);
  }
}

/// Under every optimizer; all it keeps comes back as it was.
TEST(Resume, AsynchronousTrainingKeepsItsOptimizer) {
  for (auto const& optimizer : all_optimizers()) {
    Training const training{.model = "tiny_odd", .optimizer = optimizer, .steps = 6};
    Way const async{"async", PsConfig{.chunk_mb = 0.01, .mode = PsMode::async}, 3};
    static_cast<void>(expect_comes_back(training, async));
  }
}

Error refusal(std::function<void()> const& act) {
  try {
    act();
  } catch (Error const& error) {
    return error;
  }
  return {ExitCode::done, "nothing was refused"};
}

TEST(Resume, NamesWhatForbidsIt) {
  Scratch const run;
  Training const training{.model = "tiny_odd", .steps = 1};
  static_cast<void>(train_and_save(training, ways(1)[0], 1, run.path()));
  Log log(0, false, LogLevel::error);
  auto const checkpoint = newest_checkpoint(run.path(), log);
  auto const model = test_model("tiny_odd");
  auto const check = [&](std::map<std::string, std::string> const& facts, ResumeMode resume_mode) {
    return refusal([&] { check_resumable(*checkpoint, facts, model, resume_mode, log); });
  };
  EXPECT_EQ(check({}, ResumeMode::exact).code(), ExitCode::done);
  auto const threads = check({{"threads", "2"}}, ResumeMode::exact);
  EXPECT_EQ(threads.code(), ExitCode::checkpoint);
  EXPECT_NE(std::string(threads.what()).find("threads was not known and is 2"), std::string::npos);
  EXPECT_EQ(check({{"threads", "2"}}, ResumeMode::compatible).code(), ExitCode::done);
  EXPECT_EQ(check({{"dataset", "other"}}, ResumeMode::compatible).code(), ExitCode::checkpoint);
  auto const other = refusal([&] {
    check_resumable(*checkpoint, {}, test_model("tiny_residual"), ResumeMode::compatible, log);
  });
  EXPECT_EQ(other.code(), ExitCode::checkpoint);
  EXPECT_NE(std::string(other.what()).find("missing"), std::string::npos);
}

}  // namespace
}  // namespace stratagem::test
