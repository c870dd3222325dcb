#include "train/checkpoint/facts.hpp"

#include <set>

#include <gtest/gtest.h>

#include "config/keys.hpp"
#include "config/print.hpp"
#include "config/support.hpp"
#include "model/model.hpp"
#include "strategy/ps/ps_config.hpp"

namespace stratagem {
namespace {

constexpr int workers = 3;

/// Settings of the same strategy, one more of them, and the fact that becomes another by it; empty
/// where the numbers stay the same, bit for bit.
struct Row {
  std::string base;  ///< with commas between them, section strategy is left out
  std::string setting;
  std::string fact;
};

std::vector<Row> const& rows() {
  static std::vector<Row> const all{
      {"name=serial,emulate_ranks=3", "emulate_ranks=2", "workers"},
      {"name=serial,emulate_ranks=3", "micro_batches=2", "order of sums"},
      {"name=serial,emulate_ranks=3,micro_batches=2", "accumulate=sharded", "order of sums"},
      {"name=serial,emulate_ranks=4", "groups=2", "order of sums"},
      {"name=serial,emulate_ranks=3", "groups=3", ""},
      {"name=ddp", "bucket_mb=1", ""},
      {"name=ddp", "overlap=false", ""},
      {"name=ddp", "micro_batches=2", "order of sums"},
      {"name=ddp", "compression=int8", "strategy.compression"},
      {"name=ddp,compression=int8", "rounding=stochastic", "strategy.rounding"},
      {"name=ddp,compression=int8", "error_feedback=true", "strategy.error_feedback"},
      {"name=ddp,compression=top_k", "ratio=0.1", "strategy.ratio"},
      {"name=ddp,compression=top_k", "compression=random_k", "strategy.compression"},
      {"name=ddp,compression=low_rank,error_feedback=true", "matrix_rank=3",
       "strategy.matrix_rank"},
      {"name=ddp,compression=top_k,error_feedback=true", "momentum_correction=true",
       "strategy.momentum_correction"},
      {"name=fsdp", "compression=int8", "strategy.compression"},
      {"name=fsdp", "parameter_compression=int8", "strategy.parameter_compression"},
      {"name=serial", "parameter_compression=int8", "strategy.parameter_compression"},
      {"name=serial,compression=int8", "compressed_sums=false", "strategy.compressed_sums"},
      {"name=fsdp", "shard=optimizer", ""},
      {"name=fsdp", "unit_mb=1", ""},
      {"name=fsdp", "replicas=3", ""},
      {"name=fsdp", "reshard_after_forward=false", ""},
      {"name=fsdp", "prefetch=0", ""},
      {"name=fsdp", "keep_units=1", ""},
      {"name=fsdp", "memory_budget=1GiB", ""},
      {"name=fsdp", "overlap=false", ""},
      {"name=fsdp,micro_batches=2", "accumulate=unsharded", "order of sums"},
      {"name=fsdp", "micro_batches=2", "order of sums"},
      {"name=fsdp", "reduce=compute", "order of sums"},
      {"name=local", "inner_steps=2", "strategy.inner_steps"},
      {"name=local", "begin_step=5", "strategy.begin_step"},
      {"name=local", "outer_lr=0.7", "strategy.outer_lr"},
      {"name=local", "outer_momentum=0.9", "strategy.outer_momentum"},
      {"name=local", "fragments=2", "strategy.fragments"},
      {"name=local", "delay=1", "strategy.delay"},
      {"name=local", "mixing_factor=0.5", "strategy.mixing_factor"},
      {"name=local", "workers=6", "workers"},
      {"name=local", "micro_batches=2", "order of sums"},
      {"name=gossip", "graph=ring", "strategy.graph"},
      {"name=gossip", "push_sum=true", "strategy.push_sum"},
      {"name=gossip", "mix_every=2", "strategy.mix_every"},
      {"name=gossip", "workers=6", "workers"},
      {"name=gossip", "micro_batches=2", "order of sums"},
      {"name=fedavg", "clients=50", "strategy.clients"},
      {"name=fedavg", "per_round=6", "workers"},
      {"name=fedavg", "local_steps=2", "strategy.local_steps"},
      {"name=fedavg", "split=shards", "strategy.split"},
      {"name=fedavg,split=dirichlet", "split_alpha=0.1", "strategy.split_alpha"},
      {"name=fedavg", "server_lr=0.7", "strategy.server_lr"},
      {"name=fedavg", "server_momentum=0.9", "strategy.server_momentum"},
      {"name=fedavg", "largest_change=2", "strategy.largest_change"},
      {"name=fedavg", "micro_batches=2", "order of sums"},
      {"name=fedavg", "secure=pairwise", ""},
      {"name=fedavg,secure=pairwise", "threshold=3", ""},
      {"name=fedavg,secure=pairwise", "neighbours=2", ""},
      {"name=fedavg", "experiment.lost_clients=1", "experiment.lost_clients"},
      {"name=ps", "servers=2", ""},
      {"name=ps", "server_ranks=first", ""},
      {"name=ps", "chunk_mb=1", ""},
      {"name=ps", "transport=rma", ""},
      {"name=ps", "experiment.slow_worker=0", ""},
      {"name=ps,experiment.slow_worker=0", "experiment.slow=2", ""},
      {"name=ps", "micro_batches=2", "order of sums"},
      {"name=ps", "compression=int8", "strategy.compression"},
      {"name=ps,compression=int8", "rounding=stochastic", "strategy.rounding"},
      {"name=ps,compression=int8", "error_feedback=true", "strategy.error_feedback"},
      {"name=ps,compression=int8", "transport=rma", ""},
      {"name=ps,mode=async", "compression=int8", "strategy.compression"},
      {"name=ps", "mode=async", "advanced.gate"},
      {"name=ps", "mode=delayed_sync", "strategy.delay"},
      {"name=ps", "delay=1", "strategy.delay"},
      {"name=ps,mode=delayed_sync", "advanced.momentum=shared", "advanced.momentum"},
      // What is told apart by time is the same training; what is told apart by versions is not.
      {"name=ps,mode=async", "server_ranks=first", ""},
      {"name=ps,mode=async", "chunk_mb=1", ""},
      {"name=ps,mode=async", "transport=rma", ""},
      {"name=ps,mode=async", "experiment.slow_worker=0", ""},
      {"name=ps,mode=async", "servers=2", "strategy.servers"},
      {"name=ps,mode=async,advanced.pulls=chunkwise", "chunk_mb=1", "strategy.chunk_mb"},
      {"name=ps,mode=async", "mode=dc", "strategy.dc_lambda"},
      {"name=ps,mode=dc", "mode=dc_adaptive", "strategy.dc_lambda"},
      {"name=ps,mode=dc", "advanced.dc_decay=0.9", "advanced.dc_decay"},
      {"name=ps,mode=async", "mode=gap_aware", "advanced.weight"},
      {"name=ps,mode=async", "mode=dana", "advanced.momentum"},
      {"name=ps,mode=async", "advanced.gate=ssp", "advanced.gate"},
      {"name=ps,mode=ssp", "staleness=3", "strategy.staleness"},
      {"name=ps,mode=softsync", "count=2", "strategy.count"},
      {"name=ps,mode=backup", "backup=2", "strategy.backup"},
      {"name=ps,mode=lag_cap", "lag_cap=7", "strategy.lag_cap"},
      {"name=ps,mode=lag_cap", "advanced.over_cap=attenuate", "advanced.over_cap"},
      {"name=ps,mode=async", "advanced.weight=inverse_lag", "advanced.weight"},
      {"name=ps,mode=async", "dc_lambda=0.1", "strategy.dc_lambda"},
      {"name=ps,mode=async", "advanced.momentum=per_worker", "advanced.momentum"},
      {"name=ps,mode=async", "advanced.pushes=2", "advanced.pushes"},
      {"name=ps,mode=async", "advanced.pull_every=2", "advanced.pull_every"},
      {"name=ps,mode=async", "advanced.pull_at_lag=3", "advanced.pull_at_lag"},
      {"name=ps,mode=ssp,optimizer.momentum=0", "advanced.cached_reads=true",
       "advanced.cached_reads"},
      {"name=ps,mode=async", "advanced.pulls=chunkwise", "advanced.pulls"},
      {"name=ps,mode=async", "advanced.warm_start=5", "advanced.warm_start"},
      {"name=ps,mode=async", "micro_batches=2", "order of sums"},
  };
  return all;
}

/// "mode" -> "strategy.mode"; "advanced.gate" as it is.
std::string path_of(std::string const& setting) {
  auto const name = setting.substr(0, setting.find('='));
  return (name.find('.') == std::string::npos ? "strategy." : "") + setting;
}

/// Of a run with as many workers as the others, unless they are emulated.
Facts facts_of(std::string const& settings) {
  std::vector<std::string> overrides{"data.global_batch=12"};
  // Two servers need two chunks.
  if (settings.starts_with("name=ps") && settings.find("chunk_mb") == std::string::npos)
    overrides.emplace_back("strategy.chunk_mb=0.25");
  for (auto const& setting : split(settings, ',')) overrides.push_back(path_of(setting));
  auto const config = test::parse(test::minimal, overrides);
  auto const* ps = std::get_if<PsConfig>(&config.strategy);
  bool const alone = std::holds_alternative<SerialConfig>(config.strategy);
  int const ranks = alone ? 1 : workers + (ps != nullptr ? ps->servers : 0);
  auto model = make_model(config.model, input_shape(config));
  auto plan = make_run_plan(config, model, {1200, 120}, ranks);
  Setup const setup{
      .threads = 1, .model = std::move(model), .dataset = {}, .plan = std::move(plan)};
  return training_facts(config_values(config), setup);
}

std::string refusal(Facts const& before, Facts const& now) {
  try {
    EXPECT_EQ(require_alike(before, now, ResumeMode::exact, "here"), "");
    return {};
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::checkpoint);
    return error.what();
  }
}

TEST(Facts, EveryKeyOfAStrategyIsRefusedOrWithoutEffect) {
  for (auto const& [base, setting, fact] : rows()) {
    SCOPED_TRACE(base + " -> " + setting);
    auto const before = facts_of(base), now = facts_of(base + "," + setting);
    for (auto const& told : {refusal(before, now), refusal(now, before)}) {
      if (fact.empty())
        EXPECT_EQ(told, "");
      else
        EXPECT_NE(told.find(fact + " was "), std::string::npos) << told;
    }
  }
}

/// A new key needs a row.
TEST(Facts, NoKeyOfAStrategyIsForgotten) {
  std::set<std::string> tried{"strategy.name"};
  for (auto const& row : rows())
    tried.insert(path_of(row.setting.substr(0, row.setting.find('='))));
  for (auto const& key : describe_keys(test::names())) {
    bool const of_strategy = section_of(key.path) == "strategy" || key.chooser == "strategy";
    EXPECT_TRUE(!of_strategy || tried.contains(key.path)) << key.path;
  }
}

/// A checkpoint may have been written when the parts of a policy were keys of section strategy.
TEST(Facts, NamesOfOlderCheckpointsAreKnown) {
  auto const now = facts_of("name=ps,mode=dana");
  auto old = now;
  for (auto const* part : {"gate", "momentum"}) {
    auto entry = old.extract(str("advanced.", part));
    ASSERT_FALSE(entry.empty()) << part;
    entry.key() = str("strategy.", part);
    old.insert(std::move(entry));
  }
  EXPECT_FALSE(old.extract("optimizer.decay").empty());
  EXPECT_EQ(refusal(old, now), "");
  EXPECT_NE(refusal(old, facts_of("name=ps,mode=async")).find("momentum was look_ahead"),
            std::string::npos);
}

TEST(Facts, AnotherOptimizerIsRefusedByName) {
  auto const with = [](OptimizerConfig const& optimizer) {
    return facts_of(str("name=ddp,optimizer.name=", name_of(optimizer)));
  };
  for (auto const& before : all_optimizers())
    for (auto const& now : all_optimizers()) {
      auto const told = refusal(with(before), with(now));
      auto const expected = str("optimizer.name was ", name_of(before), " and is ", name_of(now));
      EXPECT_EQ(told.empty(), name_of(before) == name_of(now)) << told;
      EXPECT_TRUE(told.empty() || told.find(expected) != std::string::npos) << told;
    }
}

/// They give the same bits.
TEST(Facts, SynchronousStrategiesAreAlike) {
  auto const serial = facts_of("name=serial,emulate_ranks=3");
  for (auto const* other :
       {"name=ddp", "name=fsdp", "name=fsdp,shard=optimizer", "name=ps", "name=ps,servers=2"})
    EXPECT_EQ(refusal(serial, facts_of(other)), "") << other;
}

TEST(Facts, StrategiesThatReadParametersOfOneCodeAreAlike) {
  auto const serial = facts_of("name=serial,emulate_ranks=3,parameter_compression=int8");
  for (auto const* other : {"name=fsdp", "name=fsdp,shard=optimizer"})
    EXPECT_EQ(refusal(serial, facts_of(str(other, ",parameter_compression=int8"))), "") << other;
  EXPECT_NE(refusal(serial, facts_of("name=ddp")).find("strategy.parameter_compression"),
            std::string::npos);
}

/// Where the sum of coded gradients is not coded.
TEST(Facts, StrategiesThatCodeAreAlikeIfTheirSumsAre) {
  auto const facts = [](std::string const& strategy) {
    return facts_of(strategy + ",compression=int4,rounding=stochastic,error_feedback=true");
  };
  auto const ps = facts("name=ps");
  for (auto const* other :
       {"name=fsdp", "name=ps,servers=2", "name=serial,emulate_ranks=3,compressed_sums=false"}) {
    EXPECT_EQ(refusal(ps, facts(other)), "") << other;
    EXPECT_EQ(refusal(facts(other), ps), "") << other;
  }
  EXPECT_NE(refusal(ps, facts("name=ddp")).find("strategy.compressed_sums"), std::string::npos);
}

TEST(Facts, CompatibleTellsAndKeepsModelAndDataset) {
  auto const before = facts_of("name=ddp");
  auto now = facts_of("name=ps,mode=delayed_sync");
  auto const told = require_alike(before, now, ResumeMode::compatible, "here");
  EXPECT_NE(told.find("strategy.delay was not set and is 1"), std::string::npos) << told;
  now["model.name"] = "another";
  EXPECT_THROW(require_alike(before, now, ResumeMode::compatible, "here"), Error);
}

TEST(Facts, AnotherMachineMayBeginAnew) {
  auto const before = facts_of("name=ddp");
  auto now = before;
  now["instruction set"] = "another";
  now["threads"] = "17";
  EXPECT_NE(refusal(before, now), "");
  EXPECT_EQ(refusal(without_surroundings(before), without_surroundings(now)), "");
}

}  // namespace
}  // namespace stratagem
