#include "keys/suggestion.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr Synonym value_synonyms[] = {
    {"gpu", "cuda", ""},
    {"nvidia", "cuda", ""},
    {"zero", "fsdp", ""},
    {"zero1", "fsdp", "with shard: optimizer"},
    {"zero2", "fsdp", "with shard: gradients"},
    {"zero3", "fsdp", "with shard: full"},
    {"fsdp2", "fsdp", ""},
    {"deepspeed", "fsdp", ""},
    {"fullshard", "full", ""},
    {"shardgradop", "gradients", ""},
    {"dp", "ddp", ""},
    {"dataparallel", "ddp", ""},
    {"distributeddataparallel", "ddp", ""},
    {"allreduce", "ddp", ""},
    {"horovod", "ddp", ""},
    {"parameterserver", "ps", ""},
    {"single", "serial", ""},
    {"none", "serial", ""},
    {"bsp", "sync", ""},
    {"synchronous", "sync", ""},
    {"asp", "async", ""},
    {"asynchronous", "async", ""},
    {"hogwild", "async", ""},
    {"float", "fp32", ""},
    {"float32", "fp32", ""},
    {"half", "fp16", ""},
    {"float16", "fp16", ""},
    {"bfloat16", "bf16", ""},
    {"double", "fp64", ""},
    {"float64", "fp64", ""},
    {"average", "mean", ""},
    {"avg", "mean", ""},
};

constexpr Synonym key_synonyms[] = {
    {"learningrate", "optimizer.lr", ""},
    {"momentumfactor", "optimizer.momentum", ""},
    {"wd", "optimizer.weight_decay", ""},
    {"maxgradnorm", "optimizer.clip_norm", ""},
    {"gradientclipping", "optimizer.clip_norm", ""},
    {"lrscheduler", "optimizer.schedule", ""},
    {"batch", "data.global_batch", ""},
    {"batchsize", "data.global_batch", ""},
    {"globalbatchsize", "data.global_batch", ""},
    {"trainbatchsize", "data.global_batch", ""},
    {"perdevicetrainbatchsize", "data.batch_per_worker", ""},
    {"localbatchsize", "data.batch_per_worker", ""},
    {"imagesize", "data.input_size", ""},
    {"resolution", "data.input_size", ""},
    {"datadir", "data.root", ""},
    {"datapath", "data.root", ""},
    {"dtype", "precision.compute", ""},
    {"amp", "precision.compute", ""},
    {"mixedprecision", "precision.compute", ""},
    {"gradientaccumulationsteps", "strategy.micro_batches", ""},
    {"accumulationsteps", "strategy.micro_batches", ""},
    {"bucketcapmb", "strategy.bucket_mb", ""},
    {"shardingstrategy", "strategy.shard", ""},
    {"numepochs", "run.epochs", ""},
    {"numtrainepochs", "run.epochs", ""},
    {"numthreads", "run.threads", ""},
    {"outputdir", "run.out", ""},
    {"worldsize", "run.ranks", ""},
    {"gradientcheckpointing", "model.recompute", ""},
    {"activationcheckpointing", "model.recompute", ""},
    {"pretrained", "model.weights", ""},
};

/// In lower case, without - and _.
std::string plain(std::string_view word) {
  std::string text;
  for (char const c : word)
    if (c != '-' && c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string ask(std::string_view name, std::string_view further = {}) {
  return str(" (did you mean \"", name, "\"", further.empty() ? "" : " ", further, "?)");
}

std::string ask_by_synonym(std::string const& wanted, std::span<std::string const> names,
                           std::span<Synonym const> synonyms) {
  for (auto const& [other, name, further] : synonyms)
    if (other == wanted && std::ranges::count(names, name) > 0) return ask(name, further);
  return {};
}

}  // namespace

std::string suggestion(std::string_view word, std::span<std::string const> names,
                       std::span<Synonym const> synonyms) {
  auto const wanted = plain(word);
  if (wanted.empty()) return {};
  if (auto question = ask_by_synonym(wanted, names, synonyms); !question.empty()) return question;
  std::vector<std::string> plain_names;
  for (auto const& name : names) plain_names.push_back(plain(name));
  auto const ask_by = [&](auto const& matches) {
    return ask(names[static_cast<std::size_t>(std::ranges::find_if(plain_names, matches) -
                                              plain_names.begin())]);
  };
  auto const begins = [&](std::string const& name) { return name.starts_with(wanted); };
  if (std::ranges::count_if(plain_names, begins) == 1) return ask_by(begins);
  auto const nearest = closest(wanted, plain_names);
  return nearest ? ask_by([&](std::string const& name) { return name == *nearest; })
                 : std::string();
}

std::string suggest_value(std::string_view word, std::span<std::string const> names) {
  return suggestion(word, names, value_synonyms);
}

std::string suggest_key(std::string_view word, std::span<std::string const> in_section,
                        std::span<std::string const> paths) {
  auto question = ask_by_synonym(plain(word), paths, key_synonyms);
  return question.empty() ? suggestion(word, in_section, {}) : question;
}

}  // namespace stratagem
