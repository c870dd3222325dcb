#include "study/measures.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <nlohmann/json.hpp>

#include "base/contract.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr double unknown = RunSummary::unknown;
constexpr double per_mebibyte = 1.0 / (1 << 20);

double known(double bytes) {
  return bytes > 0 ? bytes : unknown;
}

double total(gpu::MemoryUse const& use) {
  return known(static_cast<double>(use.total()));
}

/// Sum of the categories that last from step to step.
double lasting(gpu::MemoryUse const& use) {
  using gpu::MemoryCategory;
  if (use.total() == 0) return unknown;
  return static_cast<double>(use[MemoryCategory::parameters] + use[MemoryCategory::gradients] +
                             use[MemoryCategory::optimizer] + use[MemoryCategory::buffers]);
}

double category(gpu::MemoryUse const& use, std::size_t which) {
  return use.total() > 0 ? static_cast<double>(use.bytes[which]) : unknown;
}

/// The larger of the two, ignoring unknown values.
double greater(double a, double b) {
  return std::isnan(a) || b > a ? b : a;
}

std::vector<Measure> of_time() {
  std::vector<Measure> all{
      {"train_time_s", "s", "training time of the slowest rank, evaluation and saving apart",
       [](auto& run) { return run.train_time_s; }, "time s", 1, 2},
      {"images_per_s", "1/s",
       "images, of text tokens, of all ranks over the training time; those of dropped pushes and "
       "skipped steps apart; likewise below",
       [](auto& run) { return run.images_per_s; }, "images/s", 1, 0},
      {"wall_time_s", "s", "from the first step to the end of rank 0, with evaluation and saving",
       [](auto& run) { return run.wall_time_s; }},
      {"wall_images_per_s", "1/s", "the images of images_per_s over that time",
       [](auto& run) { return run.wall_images_per_s; }},
      {"steady_images_per_s", "1/s",
       "images per second of all workers at their median steps, the first one apart; likewise",
       [](auto& run) { return run.steady_images_per_s; }},
      {"mfu", "1",
       "model FLOPs of steady_images_per_s over what the GPUs could do: of transformers in 16 bit "
       "on GPUs whose peak is known",
       [](auto& run) { return run.mfu; }, "MFU %", 100, 1},
      {"applied_share", "1", "share of the images that were in no dropped push or skipped step",
       [](auto& run) { return run.applied_share; }},
      {"steady_step_s", "s", "time of a global batch at the median steps, dropped or not",
       [](auto& run) { return run.steady_step_s; }},
      {"epoch_s", "s", "time of as many images as are trained on, at steady_images_per_s",
       [](auto& run) { return run.epoch_s; }},
      {"step_ms", "ms", "median over steps and ranks", [](auto& run) { return run.step_ms; },
       "step ms", 1, 2},
      {"exposed_comm_share", "1", "share of step time that waits for communication, over all ranks",
       [](auto& run) { return run.exposed_share; }, "exposed comm %", 100, 1},
      {"exposed_transfer_share", "1", "of it: data moved, or a message was on its way",
       [](auto& run) { return run.exposed_transfer_share; }},
      {"exposed_waiting_share", "1", "of it: other ranks had not come so far",
       [](auto& run) { return run.exposed_waiting_share; }},
      {"exposed_server_share", "1", "of it: a server worked",
       [](auto& run) { return run.exposed_server_share; }},
      {"compute_ratio", "1",
       "forward and backward of the worker that takes longest, over those of the quickest; means",
       [](auto& run) { return run.compute_ratio; }},
      {"fewest_samples_share", "1",
       "samples of the worker that made fewest, over an even share of all",
       [](auto& run) { return run.fewest_samples_share; }},
      {"overlap_share", "1",
       "share of communication that computation did not wait for, in sampled steps of workers",
       [](auto& run) { return run.overlap_share; }}};
  for (std::size_t i = 0; i < trace::phases; ++i)
    all.push_back({str(trace::phase_names[i], "_ms"), "ms", "mean over steps and ranks",
                   [i](auto& run) { return run.phase_ms[i]; }});
  return all;
}

std::vector<Measure> of_learning() {
  return {{"test_accuracy", "1", "last known", [](auto& run) { return run.test_accuracy; },
           "accuracy %", 100, 2},
          {"train_loss", "1", "mean of the last epoch", [](auto& run) { return run.train_loss; },
           "loss", 1, 4},
          {"test_loss", "1", "last known", [](auto& run) { return run.test_loss; }},
          {"perplexity", "1", "of text: exp of test_loss",
           [](auto& run) { return run.labels == "tokens" ? std::exp(run.test_loss) : unknown; },
           "perplexity", 1, 2},
          {"bits_per_byte", "1", "of text: test_loss in bits, per byte that tokens stand for",
           [](auto& run) { return run.bits_per_byte; }, "bits/byte", 1, 4},
          {"first_epoch_accuracy", "1", "test accuracy after one epoch",
           [](auto& run) { return run.first_epoch_accuracy; }},
          {"sent_per_step_B", "B", "sent by a worker in a step, as planned",
           [](auto& run) { return run.sent_per_step; }},
          {"comm_B", "B", "sent by a worker over all epochs, mean over workers",
           [](auto& run) { return run.comm_bytes; }},
          {"total_sent_B", "B", "sent by all ranks together, servers included, over all epochs",
           [](auto& run) { return run.total_sent_bytes; }},
          {"total_sent_per_step_B", "B", "of it, per step of a global batch",
           [](auto& run) { return run.total_sent_bytes / static_cast<double>(run.steps); }}};
}

/// For the rank, worker and server with the highest peak: the sum, lasting memory, each category.
void add_peak(std::vector<Measure>& all, std::string const& role, std::string const& whose,
              gpu::MemoryUse RunSummary::*peak) {
  for (std::size_t i = 0; i < gpu::memory_categories; ++i) {
    auto const name = std::string(gpu::memory_category_names[i]);
    all.push_back({role + "peak_" + name + "_B", "B", "of it: " + name,
                   [i, peak](auto& run) { return category(run.*peak, i); }, name, per_mebibyte, 1});
  }
  all.push_back({role + "peak_B", "B",
                 "greatest sum of live tensors, without the data set, of " + whose,
                 [peak](auto& run) { return total(run.*peak); }, "peak MiB", per_mebibyte, 1});
}

std::vector<Measure> of_memory() {
  std::vector<Measure> all;
  add_peak(all, "", "the rank that needed most", &RunSummary::peak);
  add_peak(all, "worker_", "the worker that needed most", &RunSummary::worker_peak);
  add_peak(all, "server_", "the server that needed most", &RunSummary::server_peak);
  all.push_back({"worker_state_B", "B", "what lasts from step to step, in worker_peak_B",
                 [](auto& run) { return lasting(run.worker_peak); }});
  all.push_back({"server_state_B", "B", "likewise, in server_peak_B",
                 [](auto& run) { return lasting(run.server_peak); }});
  all.push_back({"state_B", "B", "the greater one of both", [](auto& run) {
                   return greater(lasting(run.worker_peak), lasting(run.server_peak));
                 }});
  all.push_back({"worker_batches_B", "B", "images of batches in worker_peak_B",
                 [](auto& run) { return run.worker_batch_bytes; }});
  all.push_back({"worker_peak_without_batches_B", "B",
                 "worker_peak_B without them, as a plan has it",
                 [](auto& run) { return total(run.worker_peak) - run.worker_batch_bytes; }});
  all.push_back({"total_peak_B", "B", "sum of the peaks of all ranks, servers included",
                 [](auto& run) { return run.total_peak_bytes; }});
  all.push_back({"data_set_B", "B", "of the data set, in the host memory of every rank; in no peak",
                 [](auto& run) { return run.data_set_bytes; }});
  all.push_back({"whole_peak_B", "B",
                 "the highest peak of a rank with the data set, where both are in host memory",
                 [](auto& run) { return run.whole_peak_bytes; }});
  all.push_back({"reserved_B", "B", "that an allocator held, most of any worker",
                 [](auto& run) { return run.reserved_bytes; }});
  all.push_back({"device_used_B", "B", "as the device tells, most of any worker",
                 [](auto& run) { return run.device_used_bytes; }});
  all.push_back({"device_memory_B", "B", "that a device has; of a CPU, the host's memory",
                 [](auto& run) { return run.device_memory_bytes; }});
  all.push_back({"device_used_share", "1", "device_used_B over device_memory_B",
                 [](auto& run) { return run.device_used_bytes / run.device_memory_bytes; }});
  all.push_back({"device_used_sd_B", "B",
                 "standard deviation of the memory in use over samples while training, mean over "
                 "workers",
                 [](auto& run) { return run.device_used_sd_bytes; }});
  all.push_back({"unfilled_share", "1",
                 "share of the memory that an allocator held that no tensor filled even at their "
                 "peak, most of any worker",
                 [](auto& run) { return run.unfilled_share; }});
  return all;
}

std::vector<Measure> of_devices() {
  return {{"utilization", "1", "of devices while training, mean over workers",
           [](auto& run) { return run.utilization; }},
          {"utilization_sd", "1", "its standard deviation over samples, mean over workers",
           [](auto& run) { return run.utilization_sd; }},
          {"energy_J", "J", "of the devices of all workers, training epochs",
           [](auto& run) { return run.energy_J; }}};
}

/// NaN for a run without servers.
template <class Get>
std::function<double(RunSummary const&)> of_servers(Get get) {
  return [get](RunSummary const& run) {
    return run.servers ? static_cast<double>(get(*run.servers)) : unknown;
  };
}

template <class Get>
std::function<double(RunSummary const&)> per_second(Get get) {
  return [get](RunSummary const& run) {
    return run.servers ? static_cast<double>(get(*run.servers)) / run.train_time_s : unknown;
  };
}

Measure count(std::string const& name, std::string const& meaning,
              std::int64_t ServerSummary::*member) {
  return {name, "count", meaning,
          of_servers([member](ServerSummary const& servers) { return servers.*member; }), name};
}

std::vector<Measure> of_updates() {
  using Servers = ServerSummary const&;
  auto const quantile = [](double share) {
    return of_servers([share](Servers servers) { return servers.lags.quantile(share); });
  };
  return {
      count("updates",
            "versions of the parameters, of the server or chunk that made most, in all attempts",
            &ServerSummary::updates),
      count("pushes", "of workers to servers, by chunk where each has versions of its own",
            &ServerSummary::pushes),
      count("pulls", "that came back for them", &ServerSummary::pulls),
      count("dropped", "pushes that were not applied", &ServerSummary::dropped),
      count("overflowed", "of those dropped: under the loss scale", &ServerSummary::overflowed),
      {"dropped_share", "1", "dropped over pushes", of_servers([](Servers servers) {
         return static_cast<double>(servers.dropped) / static_cast<double>(servers.pushes);
       })},
      {"lag_mean", "1",
       "of all pushes: updates since the parameters that a gradient was computed with",
       of_servers([](Servers servers) { return servers.lags.mean(); }), "lag mean", 1, 2},
      {"lag_p50", "1", "likewise", quantile(0.5), "lag p50"},
      {"lag_p95", "1", "likewise", quantile(0.95), "lag p95"},
      {"lag_p99", "1", "likewise", quantile(0.99), "lag p99"},
      {"lag_max", "1", "likewise", quantile(1), "lag max"},
      {"queue_depth", "1", "mean number of pushes under way when one was treated",
       of_servers([](Servers servers) { return servers.queue_depth; }), "queue", 1, 1},
      {"updates_per_s", "1/s", "updates over the training time",
       per_second([](Servers servers) { return servers.updates; })},
      {"server_bytes_per_s", "B/s", "received by all servers over the training time",
       per_second([](Servers servers) { return servers.bytes; })},
      {"push_busy_ms", "ms", "that a server computes for a push, mean",
       of_servers([](Servers servers) {
         return 1e3 * servers.busy_s / static_cast<double>(servers.pushes);
       })},
      {"server_busy_share", "1", "of training time that servers compute, mean over servers",
       of_servers([](Servers servers) { return servers.busy_share; }), "server busy %", 100, 1}};
}

}  // namespace

std::string Measure::text(RunSummary const& run) const {
  return format_number(shown * get(run), digits);
}

nlohmann::json Measure::json(RunSummary const& run) const {
  auto const value = get(run);
  bool const whole =
      (unit == "B" || unit == "count") && std::isfinite(value) && value == std::floor(value);
  return whole ? nlohmann::json(static_cast<std::int64_t>(value)) : json_number(value);
}

std::vector<Measure> const& measures() {
  static std::vector<Measure> const all = [] {
    std::vector<Measure> joined;
    for (auto part : {of_learning(), of_time(), of_memory(), of_devices(), of_updates()})
      std::ranges::move(part, std::back_inserter(joined));
    return joined;
  }();
  return all;
}

Measure const& measure(std::string_view name) {
  auto const found = std::ranges::find(measures(), name, &Measure::name);
  expects(found != measures().end(), "there is a measure of that name");
  return *found;
}

nlohmann::json json_number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

void add_lists(nlohmann::json& row, RunSummary const& run) {
  using nlohmann::json;
  auto curve = json::array(), by_rank = json::array();
  for (auto const& point : run.curve)
    curve.push_back({{"epoch", point.epoch},
                     {"time_s", json_number(point.time_s)},
                     {"train_loss", json_number(point.train_loss)},
                     {"test_loss", json_number(point.test_loss)},
                     {"test_accuracy", json_number(point.test_accuracy)}});
  for (auto const& rank : run.by_rank) {
    by_rank.push_back({{"rank", rank.rank},
                       {"role", rank.serves ? "server" : "worker"},
                       {"steps", rank.steps},
                       {"step_ms", json_number(rank.step_ms)},
                       {"comm_B", json_number(rank.comm_bytes)},
                       {"peak_B", json_number(total(rank.peak))}});
    for (std::size_t i = 0; i < trace::phases; ++i)
      by_rank.back()[str(trace::phase_names[i], "_ms")] = json_number(rank.phase_ms[i]);
  }
  row["curve"] = std::move(curve);
  row["by_rank"] = std::move(by_rank);
  row["lag_counts"] = run.servers ? run.servers->lags.counts() : std::vector<std::int64_t>{};
}

std::span<std::string const> shown_results() {
  static std::vector<std::string> const names{"test_accuracy", "train_loss", "train_time_s",
                                              "images_per_s",  "step_ms",    "exposed_comm_share",
                                              "peak_B"};
  return names;
}

std::string title_of(Measure const& measure, std::vector<RunSummary> const& runs) {
  auto title = measure.title;
  constexpr std::string_view images = "images";
  auto const is_text = [](RunSummary const& run) { return run.labels == "tokens"; };
  if (!title.starts_with(images) || std::ranges::none_of(runs, is_text)) return title;
  bool const all = std::ranges::all_of(runs, is_text);
  return title.replace(0, images.size(), all ? "tokens" : "images or tokens");
}

std::span<std::string const> shown_text() {
  static std::vector<std::string> const names{"perplexity", "bits_per_byte", "mfu"};
  return names;
}

std::span<std::string const> shown_memory() {
  static std::vector<std::string> const names = [] {
    std::vector<std::string> all;
    for (auto const category : gpu::memory_category_names)
      all.push_back(str("peak_", category, "_B"));
    return all;
  }();
  return names;
}

std::span<std::string const> shown_servers() {
  static std::vector<std::string> const names{
      "updates", "pushes",  "pulls",   "dropped", "overflowed",  "lag_mean",
      "lag_p50", "lag_p95", "lag_p99", "lag_max", "queue_depth", "server_busy_share"};
  return names;
}

}  // namespace stratagem
