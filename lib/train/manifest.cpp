#include "train/manifest.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/hash/hash.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "crypto/primitives.hpp"
#include "h5/error.hpp"
#include "strategy/state/model_layout.hpp"

extern char** environ;

namespace stratagem {
namespace {

using nlohmann::json;

/// Also of a variable that is kept for its prefix: who sets one to a secret says so in its name.
bool may_hold_a_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 8> words{
      "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "KEY", "JWT", "env_list", "_uri"};
  return std::ranges::any_of(words, [name](auto word) { return name.find(word) != name.npos; });
}

/// Variables that change what a run does or where; others may hold secrets.
json environment() {
  static constexpr std::array<std::string_view, 9> prefixes{"SLURM_JOB", "SLURM_N",  "OMP_",
                                                            "MKL_",      "NCCL_",    "CUDA_VISIBLE",
                                                            "OMPI_MCA_", "PYTORCH_", "STRATAGEM_"};
  json found = json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view const text(*entry);
    auto const equals = text.find('=');
    bool const kept = std::any_of(prefixes.begin(), prefixes.end(),
                                  [&](auto prefix) { return text.starts_with(prefix); });
    if (kept && equals != text.npos && !may_hold_a_secret(text.substr(0, equals)))
      found[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  return found;
}

json build() {
  auto const& info = build_info();
  return {{"version", info.version},     {"git_sha", info.git_sha},
          {"git_dirty", info.git_dirty}, {"build_type", info.build_type},
          {"compiler", info.compiler},   {"cxx_flags", info.cxx_flags},
          {"flavour", info.flavour},     {"libtorch", info.libtorch}};
}

json sources(Dataset const& dataset) {
  json files = json::array();
  for (auto const& file : dataset.sources)
    files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"published", file.published}});
  return files;
}

}  // namespace

std::string rank_facts(ProcessInfo const& process, Dataset const& dataset) {
  // What a GPU computes with is not in the memory whose peaks it records.
  auto const data = process.device.kind == gpu::DeviceKind::cpu ? dataset.bytes() : 0;
  return json{{"rank", process.rank},
              {"host", process.host},
              {"node_rank", process.node_rank},
              {"cores", process.cores},
              {"device", gpu::device_name(process.device)},
              {"device_memory_B", gpu::total_memory(process.device)},
              {"data_in_peaks_B", data},
              {"process", ::getpid()}}
      .dump();
}

std::string to_json(Manifest const& manifest, RunPlan const& plan, Model const& model,
                    Dataset const& dataset) {
  json ranks = json::array();
  for (auto const& line : manifest.rank_facts) ranks.push_back(json::parse(line));
  auto const pixels =
      plan.input.is_text() ? PixelStatistics() : dataset.statistics(plan.input.channels);
  auto const& text = dataset.train.text;
  json decided = json::object();
  plan.strategy.strategy->add_to(decided);
  json const document{
      {"written", utc_time(wall_ns())},
      {"arguments", manifest.arguments},
      {"attempt", manifest.attempt},
      {"build", build()},
      {"facts", manifest.facts},
      {"loaded",
       {{"mpi", manifest.mpi_library},
        {"hdf5", h5::library_version()},
        {"openssl", crypto::library()}}},
      {"ranks", ranks},
      {"threads_per_rank", manifest.threads},
      {"environment", environment()},
      {"dataset",
       {{"name", dataset.name},
        {"fingerprint", dataset.fingerprint},
        {"train_images", dataset.train.size()},
        {"test_images", dataset.test.size()},
        {"train_labels", dataset.train.size() * plan.labels_per_sample()},
        {"labels", plan.labels_name()},
        {"bytes_per_token", text ? text->bytes_per_token() : 0},
        {"bytes", dataset.bytes()},
        {"path", plan.config.data.path},
        {"classes", dataset.classes},
        {"mean", pixels.mean},
        {"stddev", pixels.stddev},
        {"files", sources(dataset)}}},
      {"model",
       {{"name", model.name},
        {"parameters", model.parameter_count()},
        {"tensors", model.parameter_tensors()},
        {"train_flops_per_label", model.train_flops},
        {"computes_in_16_bit", size_of(compute_type(plan.config.precision.compute)) == 2},
        {"channels_last", model.memory_format == MemoryFormat::channels_last}}},
      {"plan",
       {{"hash", Hash().add(plan.strategy.hash()).hex()},
        {"global_batch", plan.global_batch},
        {"batch_per_rank", plan.batch_per_rank},
        {"steps_per_epoch", plan.steps_per_epoch},
        {"total_steps", plan.total_steps},
        {"buckets", decided.value("buckets", json::array()).size()},
        {"bytes_sent_per_step", plan.strategy.traffic.bytes_sent}}},
  };
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<std::map<std::string, std::string>> former_facts(
    std::filesystem::path const& run_directory) {
  try {
    auto const document = json::parse(read_text(run_directory / "manifest.json", ExitCode::io));
    return document.at("facts").get<std::map<std::string, std::string>>();
  } catch (Error const&) {
    return std::nullopt;  // the attempt ended before it was written
  } catch (json::exception const&) {
    return std::nullopt;  // an older program wrote it
  }
}

}  // namespace stratagem
