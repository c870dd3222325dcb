#include "config/keys.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "config/text_form.hpp"
#include "config/variables.hpp"

namespace stratagem {
namespace {

using Keys = std::vector<Key>;

constexpr std::int64_t most_rank = 1 << 20;
constexpr double most_threads = 1024;  // of one rank: no node has more
constexpr double most_int = std::numeric_limits<int>::max();

Keys keys_of(RunOptions& run) {
  return {
      {"name", text(run.name), "for people; empty: <model>-<strategy>"},
      {"seed", integer(run.seed, at_least(0)), "of initial weights, sample order, dropout"},
      {"ranks", integer(run.ranks, at_least(0)),
       "0 takes what the launcher gave, else it is checked"},
      {"threads", integer(run.threads, between(0, most_threads)),
       "of LibTorch per rank; 0: usable cores / ranks on them"},
      {"device", choice(run.device, {"auto", "cpu", "cuda"}), "auto: a GPU where there is one"},
      {"deterministic", flag(run.deterministic),
       "kernels of a GPU that give the same bits each time, not the fastest; a CPU's always do"},
      {"epochs", integer(run.epochs, at_least(0)), "0 evaluates only"},
      {"max_steps", integer(run.max_steps, at_least(0)), "0: as many as the epochs have"},
      {"max_time_s", number(run.max_time_s, at_least(0)),
       "end training after so long [s]; 0: no limit"},
      {"evaluate_every", integer(run.evaluate_every, at_least(0)), "[epochs]; 0 never"},
      {"out", text(run.out), "run directory; empty: runs/<name>"},
      {"save_weights", text(run.save_weights),
       "safetensors file of the final weights; empty writes none"},
  };
}

/// A fact that is expected; nothing is written for one that is not.
Value fact(std::map<std::string, std::string>& facts, std::string name) {
  return {"text", "",
          [&facts, name] {
            auto const found = facts.find(name);
            return found == facts.end() ? "" : quoted(escape_variables(found->second));
          },
          [&facts, name](Scalar const& scalar) -> Complaint {
            if (scalar.text.empty()) {
              facts.erase(name);
            } else {
              facts[name] = scalar.text;
            }
            return {};
          }};
}

Keys expect_keys(std::map<std::string, std::string>& expect) {
  return {
      {"version", fact(expect, "version"),
       "of stratagem; the run is refused where it does not hold"},
      {"git_sha", fact(expect, "git_sha"), "commit that stratagem was built from"},
      {"libtorch", fact(expect, "libtorch"), "version of LibTorch"},
      {"device", fact(expect, "device"), "kind or name of the device"},
      {"ranks", fact(expect, "ranks"), "number of ranks"},
      {"dataset_fingerprint", fact(expect, "dataset_fingerprint"), "fingerprint of the dataset"},
  };
}

Keys keys_of(DataConfig& data, KnownNames const& names) {
  return {
      {"dataset", name(data.dataset, names.datasets), "what is learnt", true},
      {"root", text(data.root),
       "folder that holds the datasets' folders; not given: ${STRATAGEM_DATA}"},
      {"global_batch", integer(data.global_batch, at_least(0)),
       "samples per step of all ranks together; 0 where batch_per_worker is given"},
      {"batch_per_worker", integer(data.batch_per_worker, between(0, most_int)),
       "samples per step of one rank; 0 where global_batch is given"},
      {"input_size", integer(data.input_size, between(1, 4096)),
       "edge of the images the model sees [pixels]"},
      {"augment", choice(data.augment, {"none", "standard"}), "standard: random crops and flips"},
      {"subset", integer(data.subset, at_least(0)), "first so many training images; 0 all"},
  };
}

std::string recompute_text(Recompute recompute) {
  if (recompute.every < 2) return recompute.every == 0 ? "none" : "all";
  return str("every_", recompute.every);
}

/// `every_1` and `every_02` are not among its texts.
Value recompute(Recompute& place) {
  static constexpr std::string_view every = "every_";
  return {"none | all | every_<k>",
          "k >= 2",
          [&place] { return recompute_text(place); },
          [&place](Scalar const& scalar) -> Complaint {
            std::string_view const text = scalar.text;
            Recompute given{.every = text == "all" ? 1 : 0};
            if (text.starts_with(every))
              given.every = static_cast<int>(parse_integer(text.substr(every.size())).value_or(0));
            if (recompute_text(given) != text)
              return "is " + abridged(text) + ", must be none, all, or every_2, every_3, ...";
            place = given;
            return {};
          },
          {.pattern = "none|all|every_([2-9]|[1-9][0-9]+)"}};
}

Keys keys_of(ModelConfig& model, KnownNames const& names) {
  return {
      {"name", name(model.name, names.models), "what is trained", true},
      {"num_classes", integer(model.num_classes, between(2, 65536)), "width of the last layer"},
      {"weights", text(model.weights),
       "safetensors with torchvision's names; empty initialises from the seed"},
      {"head", choice(model.head, {"strict", "fresh"}),
       "fresh: the last layer is initialised, not taken from the weights"},
      {"memory_format", choice(model.memory_format, {"auto", "contiguous", "channels_last"}),
       "auto: the model's fastest"},
      {"recompute", recompute(model.recompute),
       "run blocks again in the backward pass, to keep less: each, or the first of every k"},
      {"dropout", flag(model.dropout), "false also turns stochastic depth off"},
  };
}

Keys keys_of(PrecisionConfig& precision) {
  return {
      {"compute", choice(precision.compute, {precision_names.begin(), precision_names.end()}),
       "of activations and of the copy of the weights they meet"},
      {"loss_scale", choice(precision.loss_scale, {"dynamic", "none"}),
       "of fp16, and of bf16 where it is given; the others need none"},
  };
}

Keys keys_of(OptimizerConfig& optimizer) {
  return {
      {"name", constant("sgd"), "update rule"},
      {"lr", number(optimizer.lr, at_least(0)), "learning rate"},
      {"momentum", number(optimizer.momentum, {0, true, 1, false}), "0: none"},
      {"weight_decay", number(optimizer.weight_decay, at_least(0)),
       "added to the gradient, times the weights"},
      {"nesterov", flag(optimizer.nesterov), "needs momentum"},
      {"clip_norm", number(optimizer.clip_norm, at_least(0)),
       "largest norm of the whole gradient; 0 does not clip"},
      {"reduction", choice(optimizer.reduction, {"mean", "sum"}), "of the workers' gradients"},
      {"lr_scaling", choice(optimizer.lr_scaling, {"none", "linear", "sqrt"}),
       "of lr, in the number of workers"},
      {"schedule", choice(optimizer.schedule, {"constant", "cosine", "step"}),
       "of lr over the run"},
      {"step_size", integer(optimizer.step_size, at_least(1)),
       "of schedule step: between drops [epochs]"},
      {"gamma", number(optimizer.gamma, {0, false, 1, true}),
       "of schedule step: factor of each drop"},
      {"warmup_steps", integer(optimizer.warmup_steps, at_least(0)),
       "linear from lr / warmup_steps"},
  };
}

Key micro_batches_key(int& micro_batches) {
  return {"micro_batches", integer(micro_batches, at_least(1)),
          "forward and backward passes per step"};
}

Key accumulate_key(Accumulate& accumulate) {
  return {"accumulate", choice(accumulate, {"sharded", "unsharded"}),
          "over micro-batches: sums over ranks (sharded), or a worker's own gradients first"};
}

Keys keys_of(SerialConfig& serial) {
  return {
      {"emulate_ranks", integer(serial.emulate_ranks, between(1, 1024)),
       "make the steps that so many ranks would make together"},
      micro_batches_key(serial.micro_batches),
      accumulate_key(serial.accumulate),
  };
}

Keys keys_of(DdpConfig& ddp) {
  return {
      {"bucket_mb", number(ddp.bucket_mb, above(0)),
       "a bucket closes when it holds this much [MiB]"},
      {"overlap", flag(ddp.overlap), "communicate while the backward pass goes on"},
      micro_batches_key(ddp.micro_batches),
  };
}

Keys keys_of(FsdpConfig& fsdp) {
  return {
      {"shard", choice(fsdp.shard, {"optimizer", "gradients", "full"}),
       "what is spread over the ranks: ZeRO-1, ZeRO-2, ZeRO-3"},
      {"unit_mb", number(fsdp.unit_mb, above(0)), "blocks join a unit until it holds this [MiB]"},
      {"reshard_after_forward", flag(fsdp.reshard_after_forward),
       "of shard full: gather again for the backward pass"},
      {"prefetch", integer(fsdp.prefetch, at_least(0)), "units gathered ahead, in both passes"},
      {"keep_units", integer(fsdp.keep_units, at_least(0)),
       "of shard full: so many of the last units are not given up after forward"},
      {"memory_budget", text(fsdp.memory_budget),
       "of each rank's lasting memory, such as 600MiB; decides prefetch and keep_units"},
      {"overlap", flag(fsdp.overlap), "communicate while blocks compute"},
      accumulate_key(fsdp.accumulate),
      micro_batches_key(fsdp.micro_batches),
      {"reduce", choice(fsdp.reduce, {"master", "compute"}),
       "type in which gradients are summed over ranks"},
      {"poison", flag(fsdp.poison), "fill memory that is given up with NaN, to find errors"},
  };
}

/// A part of a policy, which need not be given.
template <class Enum>
Value part(std::optional<Enum>& place, std::vector<std::string> const& names) {
  return if_given(place, [&](Enum& which) { return choice(which, names); });
}
Value part(std::optional<int>& place, Range const& range) {
  return if_given(place, [&](int& n) { return integer(n, range); });
}

/// The names of rules, or numbers with commas between them.
Value server_ranks(PsConfig& ps) {
  static std::vector<std::string> const rules{"last", "first", "spread"};
  return {"last | first | spread | <ranks>",
          "",
          [&ps] {
            if (ps.server_ranks != ServerPlacement::listed)
              return rules.at(static_cast<std::size_t>(ps.server_ranks));
            std::vector<std::string> ranks;
            for (int const rank : ps.listed_ranks) ranks.push_back(std::to_string(rank));
            return quoted(join(ranks, ","));
          },
          [&ps](Scalar const& scalar) -> Complaint {
            if (auto const rule = std::ranges::find(rules, scalar.text); rule != rules.end()) {
              ps.server_ranks = static_cast<ServerPlacement>(rule - rules.begin());
              return {};
            }
            std::vector<int> ranks;
            for (auto const& piece : split(scalar.text, ',')) {
              auto const rank = parse_integer(piece);
              if (!rank || *rank < 0 || *rank > most_rank)
                return "is " + abridged(scalar.text) +
                       ", must be last, first, spread, or ranks such as 0,4";
              ranks.push_back(static_cast<int>(*rank));
            }
            ps.server_ranks = ServerPlacement::listed;
            ps.listed_ranks = std::move(ranks);
            return {};
          },
          {.pattern = "last|first|spread|[0-9]+(,[0-9]+)*"}};
}

Keys keys_of(PsConfig& ps) {
  return {
      {"servers", integer(ps.servers, at_least(1)), "ranks that own the parameters"},
      {"server_ranks", server_ranks(ps),
       "the highest or lowest ranks, the last of each of equal groups, or a list such as 0,4"},
      {"chunk_mb", number(ps.chunk_mb, above(0)),
       "pieces in which parameters and gradients travel [MiB]"},
      {"transport", choice(ps.transport, {"auto", "two_sided", "rma"}),
       "messages, or access to the servers' memory; auto: what is faster where the run starts"},
      {"mode",
       choice(ps.mode, {"sync", "async", "ssp", "modified", "lag_cap", "dana", "dc", "delayed_sync",
                        "softsync", "backup"}),
       "when gradients are applied, and how; what is not given below is the mode's"},
      {"gate", part(ps.gate, {"none", "bsp", "ssp", "softsync", "backup"}),
       "when an update is made, and when a worker that has pushed may go on"},
      {"staleness", part(ps.staleness, at_least(0)),
       "of gate ssp: steps by which a worker may be ahead of the slowest; ssp, modified: 2"},
      {"count", part(ps.count, at_least(1)),
       "of gate softsync: gradients that make an update; softsync: the number of workers"},
      {"backup", part(ps.backup, at_least(1)),
       "of gate backup: workers that are not waited for; backup: 1"},
      {"lag_cap", part(ps.lag_cap, at_least(0)),
       "of gradients that are applied as they are; 0: none; lag_cap: the number of workers"},
      {"over_cap", part(ps.over_cap, {"drop", "attenuate"}),
       "a gradient beyond lag_cap is dropped, or counts cap / lag"},
      {"weight", part(ps.weight, {"one", "inverse_lag", "inverse_gap"}),
       "factor of a gradient: 1 / lag, 1 / gap in mean updates; modified: inverse_lag"},
      {"dc_lambda", if_given(ps.dc_lambda, [](double& x) { return number(x, at_least(0)); }),
       "of g + lambda g g (p - p_base); dc: 0.04"},
      {"momentum", part(ps.momentum, {"shared", "per_worker", "look_ahead"}),
       "of which gradients one momentum is the sum; dana, delayed_sync: look_ahead"},
      {"delay", part(ps.delay, between(0, 1)),
       "of gate bsp: versions by which workers are behind; delayed_sync: 1"},
      {"pushes", part(ps.pushes, at_least(1)),
       "of a worker per share of a global batch, each of fewer samples; modified: 2"},
      {"pull_every", part(ps.pull_every, at_least(1)),
       "pushes from one pull of the parameters to the next"},
      {"pull_at_lag", integer(ps.pull_at_lag, at_least(0)),
       "in place of pull_every: a pull before a gradient would be so many versions old; 0: none"},
      {"pulls", choice(ps.pulls, {"consistent", "chunkwise"}),
       "what has one version: all that a server holds, or each chunk, which comes back at once"},
      {"warm_start", integer(ps.warm_start, at_least(0)),
       "first steps, of asynchronous modes, in which an update is the mean of all workers' pushes"},
      {"micro_batches", integer(ps.micro_batches, at_least(1)),
       "forward and backward passes for one push"},
      {"slow_worker", integer(ps.slow_worker, at_least(-1)),
       "the worker that is made slower, for experiments; -1: none"},
      {"slow", number(ps.slow, at_least(1)), "by this factor"},
  };
}

/// Another name puts another strategy, with its defaults, in the place of this one.
Value strategy_name(StrategyConfig& strategy) {
  std::vector<std::string> names;
  for (auto const& each : all_strategies()) names.emplace_back(name_of(each));
  return one_of(
      names, [&strategy] { return std::string(name_of(strategy)); },
      [&strategy](std::size_t position) {
        if (position != strategy.index()) strategy = all_strategies()[position];
      });
}

Keys keys_of(StrategyConfig& strategy) {
  Keys keys{{"name", strategy_name(strategy), "how the ranks share the work", true}};
  std::ranges::move(std::visit([](auto& config) { return keys_of(config); }, strategy),
                    std::back_inserter(keys));
  return keys;
}

Keys keys_of(CommConfig& comm) {
  return {
      {"backend", choice(comm.backend, {"auto", "mpi", "nccl"}),
       "auto: nccl on GPUs with one rank each, else mpi"},
      {"timeout_s", integer(comm.timeout_s, at_least(1)), "of one wait for other ranks [s]"},
      {"delay_us", integer(comm.delay_us, at_least(0)),
       "of backend mpi: operations begin late by a random time up to this, to test overlap [us]"},
  };
}

Keys keys_of(trace::TraceConfig& trace) {
  return {
      {"spans_every", integer(trace.spans_every, at_least(0)),
       "spans and memory of every so many steps; 0 none"},
      {"device_sample_hz", number(trace.device_sample_hz, between(0, 1000)),
       "how often the device is asked [Hz]; 0 never"},
  };
}

Keys keys_of(CheckpointConfig& checkpoint) {
  return {
      {"every_minutes", number(checkpoint.every_minutes, at_least(0)),
       "save the state so often; 0: not by time"},
      {"every_steps", integer(checkpoint.every_steps, at_least(0)), "0: not by steps"},
      {"keep", integer(checkpoint.keep, at_least(1)), "checkpoints; older ones are removed"},
      {"on_signal", flag(checkpoint.on_signal),
       "USR1, and INT once, save and end the run with code 75"},
  };
}

Keys keys_of(WatchdogConfig& watchdog) {
  return {
      {"enabled", flag(watchdog.enabled),
       "of several ranks: end the run with code 81 when one hangs"},
      {"floor_s", number(watchdog.floor_s, at_least(1)), "no rank is found to hang sooner [s]"},
      {"factor", number(watchdog.factor, at_least(1)),
       "nor before it is in a phase of a step for so many times the phase's 99th percentile"},
  };
}

Keys keys_of(IntegrityConfig& integrity) {
  return {
      {"hash_every", integer(integrity.hash_every, at_least(0)),
       "compare what ranks hold alike every so many steps, and before saving; 0 never"},
  };
}

KeyDescription describe(Key const& key) {
  return {key.path,        key.value.type, key.required ? "required" : key.value.get(),
          key.value.range, key.meaning,    {}};
}

}  // namespace

std::vector<Key> keys_of(RunConfig& config, KnownNames const& names) {
  Keys all{{"schema", constant("1"), "version of this list of keys"}};
  auto const add = [&all](std::string const& section, Keys keys) {
    for (auto& key : keys) {
      key.path = section + "." + key.path;
      all.push_back(std::move(key));
    }
  };
  add("run", keys_of(config.run));
  add("expect", expect_keys(config.expect));
  add("data", keys_of(config.data, names));
  add("model", keys_of(config.model, names));
  add("precision", keys_of(config.precision));
  add("optimizer", keys_of(config.optimizer));
  add("strategy", keys_of(config.strategy));
  add("comm", keys_of(config.comm));
  add("trace", keys_of(config.trace));
  add("checkpoint", keys_of(config.checkpoint));
  add("watchdog", keys_of(config.watchdog));
  add("integrity", keys_of(config.integrity));
  return all;
}

std::string section_of(std::string const& path) {
  auto const dot = path.find('.');
  return dot == std::string::npos ? std::string{} : path.substr(0, dot);
}

std::string name_in_section(std::string const& path) {
  auto const dot = path.find('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::vector<KeyDescription> describe_keys(KnownNames const& names) {
  std::vector<KeyDescription> rows;
  for (auto const& strategy : all_strategies()) {
    RunConfig config;
    config.strategy = strategy;
    for (auto const& key : keys_of(config, names)) {
      auto row = std::ranges::find(rows, key.path, &KeyDescription::path);
      if (row == rows.end()) {
        auto const last =
            std::find_if(rows.rbegin(), rows.rend(), [&](KeyDescription const& other) {
              return section_of(other.path) == section_of(key.path);
            });
        row = rows.insert(last == rows.rend() ? rows.end() : last.base(), describe(key));
      }
      if (section_of(key.path) == "strategy" && !key.required)
        row->strategies.emplace_back(name_of(strategy));
    }
  }
  return rows;
}

}  // namespace stratagem
