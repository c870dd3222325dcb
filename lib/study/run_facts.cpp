#include "study/run_facts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "config/document.hpp"
#include "config/print.hpp"
#include "gpu/peak_flops.hpp"
#include "run_files/outcome.hpp"

namespace stratagem {
namespace {

/// 0 where ranks differ, or a manifest does not tell.
std::int64_t common_device_memory(nlohmann::json const& ranks) {
  auto const of = [](nlohmann::json const& rank) {
    return rank.value("device_memory_B", std::int64_t{0});
  };
  auto const first = ranks.empty() ? 0 : of(ranks.front());
  return std::ranges::all_of(ranks, [&](auto const& rank) { return of(rank) == first; }) ? first
                                                                                         : 0;
}

/// Keys that name files of the user's, with those that say which part of them is taken.
struct FileKey {
  char const* name;
  std::vector<char const*> parts;
};
std::vector<FileKey> file_keys() {
  return {{"data.path", {"data.subset", "data.holdout", "data.seq_len"}},
          {"model.file", {"model.weights"}},
          {"model.weights", {"model.head"}}};
}

/// `trained`: the facts of a manifest.
void add_contents(std::filesystem::path const& run, nlohmann::json const& trained,
                  RunFacts& facts) {
  auto const config = run / "config.yaml";
  auto values = values_in(std::filesystem::exists(config) ? read_text(config, ExitCode::io) : "");
  auto const weights = trained.value("initial weights", "");
  facts.contents = {{"data.path", trained.value("dataset", "")}, {"model.weights", weights}};
  if (trained.contains("graph"))
    facts.contents["model.file"] =
        trained.value("graph", "") + (values["model.weights"].empty() ? " " + weights : "");
  for (auto const& [name, parts] : file_keys()) {
    auto const content = facts.contents.find(name);
    if (values[name].empty() || content == facts.contents.end()) continue;
    auto said = str(name, ": ", values[name]);
    for (auto const* part : parts)
      if (!values[part].empty()) said += str(", ", part, ": ", values[part]);
    facts.files[said] = content->second;
  }
}

}  // namespace

std::map<std::string, std::string> values_in(std::string const& printed) {
  Problems ignored;
  std::map<std::string, std::string> values;
  if (auto const document = read_document(printed, "", ignored))
    for (auto const& entry : document->entries) values[entry.path()] = entry.value.text;
  return values;
}

bool decides(std::string const& path) {
  constexpr std::array<std::string_view, 6> keys{"run.name",  "run.seed",         "run.out",
                                                 "run.ranks", "run.save_weights", "data.root"};
  constexpr std::array<std::string_view, 5> sections{"trace.", "comm.", "checkpoint.", "watchdog.",
                                                     "expect."};
  return std::ranges::find(keys, path) == keys.end() &&
         std::ranges::none_of(sections, [&](auto section) { return path.starts_with(section); });
}

RunFacts read_run_facts(std::filesystem::path const& run) {
  RunFacts facts;
  try {
    auto const manifest = nlohmann::json::parse(read_text(run / "manifest.json", ExitCode::io));
    auto const& dataset = manifest.at("dataset");
    add_contents(run, manifest.value("facts", nlohmann::json::object()), facts);
    facts.labels = dataset.value("labels", facts.labels);
    facts.train_labels =
        dataset.value("train_labels", dataset.at("train_images").get<std::int64_t>());
    facts.bytes_per_token = dataset.value("bytes_per_token", 0.0);
    if (auto const& model = manifest.at("model"); model.value("computes_in_16_bit", false))
      facts.train_flops = model.value("train_flops_per_label", 0.0);
    facts.data_bytes = dataset.value("bytes", facts.data_bytes);
    facts.device_memory = common_device_memory(manifest.at("ranks"));
    for (auto const& rank : manifest.at("ranks")) {
      facts.traced_data_bytes.push_back(rank.value("data_in_peaks_B", std::int64_t{0}));
      facts.peak_flops += gpu::peak_flops_of_16_bit(rank.value("device", "")).value_or(0);
    }
    facts.ranks = static_cast<int>(manifest.at("ranks").size());
    facts.global_batch = manifest.at("plan").at("global_batch").get<std::int64_t>();
    facts.sent_per_step = manifest.at("plan").at("bytes_sent_per_step").get<std::int64_t>();
    auto const& build = manifest.at("build");
    facts.commit =
        build.at("git_sha").get<std::string>() + (build.at("git_dirty").get<bool>() ? "+" : "");
    if (auto const outcome = read_outcome(run)) facts.wall_time_s = outcome->wall_time_s;
  } catch (std::exception const& problem) {
    facts.problem = problem.what();
  }
  return facts;
}

std::string without_manifest(std::filesystem::path const& run, RunFacts const& facts) {
  return str((run / "manifest.json").string(), " is missing or damaged (", facts.problem,
             "): peaks of memory, and what else follows from it, are not known");
}

std::map<std::string, std::string> deciding_settings(RunConfig const& config) {
  auto settings = config_values(config);
  std::erase_if(settings, [](auto const& setting) { return !decides(setting.first); });
  return settings;
}

}  // namespace stratagem
