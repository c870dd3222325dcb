#include "config/keys.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "keys/text_form.hpp"
#include "keys/variables.hpp"

namespace stratagem {
namespace {

/// Whose keys depend on the strategy.
constexpr std::array<std::string_view, 3> strategy_sections{"strategy", "advanced", "experiment"};

constexpr double most_threads = 1024;  // of one rank: no node has more
constexpr double most_int = std::numeric_limits<int>::max();

/// The name of a file or folder.
Value path(std::string& place) {
  auto value = text(place);
  value.type = path_type;
  return value;
}

Keys keys_of(RunOptions& run) {
  return {
      {"name", text(run.name), "for people; empty: <model>-<strategy>"},
      {"seed", integer(run.seed, at_least(0)), "of initial weights, sample order, dropout"},
      {"ranks", integer(run.ranks, at_least(0)),
       "0: as many as the launcher started; another number must match"},
      {"threads", integer(run.threads, between(0, most_threads)),
       "of LibTorch per rank; 0: usable cores / ranks on them"},
      {"device", choice(run.device, {device_names.begin(), device_names.end()}),
       "auto: a GPU if there is one"},
      {"deterministic", flag(run.deterministic),
       "kernels of a GPU that give the same bits each time, not the fastest; a CPU's always do"},
      {"graph", choice(run.graph, {"auto", "on", "off"}),
       "a GPU keeps the work of a step and repeats it at one launch, with the same bits; auto: "
       "where strategy and communicator allow it"},
      {"epochs", integer(run.epochs, at_least(0)), "0 evaluates only"},
      {"max_steps", integer(run.max_steps, at_least(0)), "0: as many as the epochs have"},
      {"max_time_s", number(run.max_time_s, at_least(0)),
       "end the run after so much training, evaluation and saving apart [s]; 0: no limit"},
      {"evaluate_every", integer(run.evaluate_every, at_least(0)), "[epochs]; 0 never"},
      {"out", path(run.out),
       "run directory; empty: runs/<name>; ~/ is your home folder in all paths"},
      {"save_weights", path(run.save_weights),
       "safetensors file of the final weights; empty writes none"},
  };
}

/// A fact that is expected; nothing is written for one that is not.
Value fact(std::map<std::string, std::string>& facts, std::string name) {
  return {"text", "",
          [&facts, name] {
            auto const found = facts.find(name);
            return found == facts.end() ? "" : yaml_quoted(escape_variables(found->second));
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
      {"version", fact(expect, "version"), "of stratagem; a run with another version is refused"},
      {"git_sha", fact(expect, "git_sha"), "commit that stratagem was built from"},
      {"libtorch", fact(expect, "libtorch"), "version of LibTorch"},
      {"device", fact(expect, "device"), "kind or name of the device"},
      {"ranks", fact(expect, "ranks"), "number of ranks"},
      {"dataset_fingerprint", fact(expect, "dataset_fingerprint"), "fingerprint of the dataset"},
  };
}

/// The user's own images have no name that could be given.
Value dataset_name(DataConfig& data, std::vector<std::string> const& known) {
  auto value = name(data.dataset, known);
  value.get = [&data] { return data.path.empty() ? data.dataset : ""; };
  return value;
}

/// A key of the user's own images, which is nothing to write where there are none.
Value of_own(DataConfig& data, Value value) {
  value.get = [&data, get = value.get] { return data.path.empty() ? "" : get(); };
  return value;
}

/// A key of text, which is nothing to write where there is none.
Value of_text(DataConfig const& data, Value value) {
  value.get = [&data, get = value.get] { return data.seq_len > 0 ? get() : ""; };
  return value;
}

Keys keys_of(DataConfig& data, KnownNames const& names) {
  return {
      {"dataset", dataset_name(data, names.datasets), "data set", true, InFirstFile::no,
       "data.path"},
      {"path", of_own(data, path(data.path)),
       "your own data, instead of a data set: a folder of images (train/CLASS/*.jpg, train*.tar or "
       "train*.h5, and the same of val), or text: a file, or a folder of train*.txt or train*.bin"},
      {"mean", of_own(data, numbers(data.mean, between(0, 1))),
       "of your own images, per channel, of pixels in [0, 1]; empty: that of ImageNet"},
      {"stddev", of_own(data, numbers(data.stddev, above(0))),
       "their standard deviation; empty: that of ImageNet"},
      {"flip", of_own(data, flag(data.flip)),
       "augment mirrors half of your own images; false (default: true) where that changes classes"},
      {"decode_threads", of_own(data, integer(data.decode_threads, between(0, most_threads))),
       "that read your own images, per rank; 0 (default): 1, or beside a GPU its cores but one"},
      {"root", path(data.root),
       "folder that holds the datasets' folders; not given: ${STRATAGEM_DATA}"},
      {"global_batch", integer(data.global_batch, at_least(0)),
       "samples per step of all ranks together; 0 where batch_per_worker is given"},
      {"batch_per_worker", integer(data.batch_per_worker, between(0, most_int)),
       "samples per step of one rank; 0 where global_batch is given"},
      {"input_size", integer(data.input_size, between(1, 4096)),
       "edge of the images the model sees [pixels]"},
      {"seq_len", of_text(data, integer(data.seq_len, at_least(0))),
       "tokens of a sequence of text; 0 (default): model.context"},
      {"augment", choice(data.augment, {"none", "standard"}), "standard: random crops and flips"},
      {"subset", integer(data.subset, at_least(0)), "use only the first N training images; 0: all"},
      {"holdout", integer(data.holdout, at_least(0)),
       "do not train on the last N of them, evaluate these instead of the test images"},
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

/// A file's model has no name that could be given.
Value model_name(ModelConfig& model, std::vector<std::string> const& known) {
  auto value = name(model.name, known);
  value.get = [&model] { return model.file.empty() ? model.name : ""; };
  return value;
}

/// A number that is nothing to write where it is 0.
Value unless_zero(Value value) {
  value.get = [get = value.get] { return get() == "0" ? "" : get(); };
  return value;
}

Value class_count(std::int64_t& place) {
  auto value = integer(place, between(2, 1 << 20));
  value.set = [&place, set = value.set](Scalar const& scalar) -> Complaint {
    if (scalar.text != "0") return set(scalar);
    place = 0;
    return {};
  };
  return unless_zero(value);
}

Keys keys_of(ModelConfig& model, KnownNames const& names) {
  return {
      {"name", model_name(model, names.models), "model to train", true, InFirstFile::no,
       "model.file"},
      {"file", path(model.file), "a model exported by analysis/export_model.py, instead of a name"},
      {"num_classes", class_count(model.num_classes),
       "width of the last layer; 0, of files and text: as many as the file's or the vocabulary"},
      {"weights", path(model.weights),
       "safetensors with torchvision's or Hugging Face's names; empty initialises from the seed"},
      {"head", choice(model.head, {"strict", "fresh"}),
       "fresh: the last layer is initialised, not taken from the weights"},
      {"memory_format", choice(model.memory_format, {"auto", "contiguous", "channels_last"}),
       "auto: the model's fastest"},
      {"recompute", recompute(model.recompute),
       "run blocks again in the backward pass, to save memory: all, or the first of every k"},
      {"dropout", flag(model.dropout), "false also turns stochastic depth off"},
      {"frozen", flag(model.frozen),
       "true: batch norms and dropouts that a file has in evaluation mode are meant to be"},
      {"fused", choice(model.fused, {"off", "auto"}),
       "auto: layers are computed in the program's own ways where these are faster; off: by "
       "LibTorch alone"},
      {"layers", unless_zero(integer(model.layers, at_least(0))),
       "of transformers; 0 (default): as the model's name says, likewise the following"},
      {"heads", unless_zero(integer(model.heads, at_least(0))), "of attention in each layer"},
      {"width", unless_zero(integer(model.width, at_least(0))),
       "of what passes through the layers"},
      {"patch", unless_zero(integer(model.patch, at_least(0))),
       "of transformers of images: edge of a patch [pixels]"},
      {"context", unless_zero(integer(model.context, at_least(0))),
       "of transformers of text: longest sequence [tokens]"},
      {"experts", unless_zero(integer(model.experts, at_least(0))),
       "of transformers of text: MLPs between which each token has a choice of two, in every "
       "second "
       "layer (mixture of experts); 0: one for all"},
      {"tie", flag(model.tie), "of transformers of text: the head uses the token embedding"},
      {"dropout_rate", number(model.dropout_rate, {0, true, 1, false}),
       "of transformers: share of what each half of a layer adds that is dropped"},
  };
}

Keys keys_of(PrecisionConfig& precision) {
  return {
      {"compute", choice(precision.compute, {precision_names.begin(), precision_names.end()}),
       "of activations and of the copy of the weights they meet"},
      {"loss_scale", choice(precision.loss_scale, {"dynamic", "none"}),
       "of fp16, and of bf16 if it is set; the others need none"},
  };
}

Keys keys_of(CommConfig& comm) {
  return {
      {"backend", choice(comm.backend, {"auto", "mpi", "nccl"}),
       "auto: nccl on GPUs with one rank each, else mpi"},
      {"node_memory", choice(comm.node.memory, {"auto", "required", "off"}),
       "sums on CPUs of one node in memory that its ranks share; else by messages"},
      {"algorithm", choice(comm.node.algorithm, {"auto", "flat", "chain"}),
       "of sums over several nodes; auto: chain, where each has as many ranks, more than one"},
      {"ranks_per_node", integer(comm.node.ranks_per_node, at_least(0)),
       "for tests: so many consecutive ranks count as a node; 0: as they are"},
      {"timeout_s", integer(comm.timeout_s, at_least(1)), "of one wait for other ranks [s]"},
  };
}

Keys keys_of(trace::TraceConfig& trace) {
  return {
      {"spans_every", integer(trace.spans_every, at_least(0)),
       "record spans and memory every N steps; 0: never"},
      {"device_sample_hz", number(trace.device_sample_hz, between(0, 1000)),
       "samples of the device per second; 0: never"},
  };
}

Keys keys_of(CheckpointConfig& checkpoint) {
  return {
      {"every_minutes", number(checkpoint.every_minutes, at_least(0)),
       "save the state every N minutes; 0: not by time"},
      {"every_steps", integer(checkpoint.every_steps, at_least(0)),
       "and every N steps; 0: not by steps"},
      {"keep", integer(checkpoint.keep, at_least(1)), "checkpoints; older ones are removed"},
      {"at_end", flag(checkpoint.at_end),
       "save the last step, too: for export-weights, sample and a longer run; a study's cells have "
       "false unless it is given"},
      {"on_signal", flag(checkpoint.on_signal),
       "USR1, and INT once, save and end the run with code 75"},
  };
}

Keys keys_of(WatchdogConfig& watchdog) {
  return {
      {"enabled", flag(watchdog.enabled),
       "of several ranks: end the run with code 81 when one hangs"},
      {"floor_s", number(watchdog.floor_s, at_least(1)),
       "a rank hangs if it is in one phase of a step for longer than this [s]"},
      {"factor", number(watchdog.factor, at_least(1)),
       "and longer than this many times the 99th percentile of that phase"},
  };
}

Keys keys_of(IntegrityConfig& integrity) {
  return {
      {"hash_every", integer(integrity.hash_every, at_least(0)),
       "compare replicas every N steps, and before saving; 0: never"},
  };
}

/// The section whose name decides whether there is the key; "" where it is always there.
std::string chooser_of(std::string const& path) {
  auto const section = section_of(path);
  if (std::ranges::count(strategy_sections, section) > 0) return "strategy";
  return section == "optimizer" ? section : "";
}

KeyDescription describe(Key const& key) {
  return {.path = key.path,
          .type = key.value.type,
          .default_value = key.required ? "required" : key.value.get(),
          .range = key.value.range,
          .meaning = key.meaning,
          .in_first_file = key.in_first_file,
          .chooser = {},
          .owners = {},
          .other_defaults = {}};
}

}  // namespace

Keys keys_of(RunConfig& config, KnownNames const& names) {
  Keys all{{"schema", constant("1"), "version of this list of keys"}};
  auto const add = [&all](std::string const& section, Keys keys) {
    for (auto& key : keys) {
      if (key.path.find('.') == std::string::npos) key.path = section + "." + key.path;
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

std::vector<SectionChoice> section_choices() {
  std::vector<SectionChoice> choices;
  for (auto const& each : all_strategies())
    choices.push_back({"strategy", std::string(name_of(each)),
                       [each](RunConfig& config) { config.strategy = each; }});
  for (auto const& each : all_optimizers())
    choices.push_back({"optimizer", std::string(name_of(each)),
                       [each](RunConfig& config) { config.optimizer = each; }});
  return choices;
}

std::vector<KeyDescription> describe_keys(KnownNames const& names) {
  std::vector<KeyDescription> rows;
  for (auto const& [section, name, choose] : section_choices()) {
    RunConfig config;
    choose(config);
    for (auto const& key : keys_of(config, names)) {
      auto const description = describe(key);
      auto row = std::ranges::find(rows, key.path, &KeyDescription::path);
      if (row == rows.end()) {
        auto const last =
            std::find_if(rows.rbegin(), rows.rend(), [&](KeyDescription const& other) {
              return section_of(other.path) == section_of(key.path);
            });
        row = rows.insert(last == rows.rend() ? rows.end() : last.base(), description);
      }
      if (chooser_of(key.path) != section || name_in_section(key.path) == "name") continue;
      row->chooser = section;
      row->owners.push_back(name);
      if (description.default_value != row->default_value)
        row->other_defaults += str("; ", name, ": ", description.default_value);
    }
  }
  for (auto& row : rows)
    if (std::ranges::count(section_choices(), row.chooser, &SectionChoice::section) ==
        std::ssize(row.owners))
      row.owners.clear();
  return rows;
}

}  // namespace stratagem
