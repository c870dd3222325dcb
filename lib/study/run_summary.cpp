#include "study/run_summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

#include "base/median.hpp"
#include "base/text.hpp"
#include "trace/exposed/exposed_time.hpp"
#include "trace/overlap.hpp"

namespace stratagem {
namespace {

using trace::RankTrace;
using Ranks = std::vector<RankTrace const*>;

constexpr double unknown = RunSummary::unknown;

double sum(h5::Integers const& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0}));
}

double sum(h5::Reals const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

h5::Reals known_of(h5::Reals values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values;
}

double last_known(h5::Reals const& values) {
  auto const known = known_of(values);
  return known.empty() ? unknown : known.back();
}

double mean_known(h5::Reals const& values) {
  auto const known = known_of(values);
  return known.empty() ? unknown : sum(known) / static_cast<double>(known.size());
}

double greatest_known(h5::Reals const& values) {
  auto const known = known_of(values);
  return known.empty() ? unknown : std::ranges::max(known);
}

std::string text_of(std::map<std::string, h5::AttributeValue> const& attributes,
                    std::string const& name) {
  auto const found = attributes.find(name);
  auto const* text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : "";
}

bool made_steps(RankTrace const& rank) {
  return rank.table(trace::steps_table()).rows > 0;
}

bool is_server(RankTrace const& rank) {
  return !made_steps(rank) && rank.table(trace::ps_table()).rows > 0;
}

std::string status_of(std::vector<RankTrace> const& ranks) {
  auto all = [&](trace::Status status) {
    return std::all_of(ranks.begin(), ranks.end(), [&](auto const& rank) {
      return rank.closed_cleanly && rank.status == status;
    });
  };
  if (all(trace::Status::complete)) return "complete";
  if (all(trace::Status::stopped)) return "stopped";
  auto const failed = std::any_of(ranks.begin(), ranks.end(), [](auto const& rank) {
    return rank.status == trace::Status::failed;
  });
  return failed ? "failed" : "running or killed";
}

// ---- time ---------------------------------------------------------------------------------------

/// Means over its steps.
void add_mean_step(RankTrace const& rank, RankSummary& summary) {
  auto const& table = rank.table(trace::steps_table());
  auto const mean_ms = [&](std::string const& column) {
    return table.rows == 0 ? unknown
                           : sum(table.integers(column)) * 1e-6 / static_cast<double>(table.rows);
  };
  summary.steps = table.rows;
  summary.step_ms = mean_ms("dur_step_ns");
  for (std::size_t i = 0; i < trace::phases; ++i)
    summary.phase_ms[i] = mean_ms(str("dur_", trace::phase_names[i], "_ns"));
}

/// Phases, whole steps and their waiting for communication, over all ranks.
void add_steps(std::vector<RankTrace> const& ranks, RunSummary& summary) {
  std::vector<double> durations;
  std::array<double, trace::phases> spent{};
  double total = 0;
  for (auto const& rank : ranks) {
    auto const& steps = rank.table(trace::steps_table());
    for (auto const ns : steps.integers("dur_step_ns"))
      durations.push_back(static_cast<double>(ns) * 1e-6);
    for (std::size_t i = 0; i < trace::phases; ++i)
      spent[i] += sum(steps.integers(str("dur_", trace::phase_names[i], "_ns")));
    total += sum(steps.integers("dur_step_ns"));
  }
  auto const steps = static_cast<double>(durations.size());
  for (std::size_t i = 0; i < trace::phases && steps > 0; ++i)
    summary.phase_ms[i] = spent[i] * 1e-6 / steps;
  if (total > 0)
    summary.exposed_share = spent[static_cast<std::size_t>(trace::Phase::comm_exposed)] / total;
  summary.step_ms = median(std::move(durations));
}

/// Forward and backward, mean over steps [ns]; NaN of a rank without steps.
double computing_ns(RankTrace const& rank) {
  auto const& steps = rank.table(trace::steps_table());
  if (steps.rows == 0) return unknown;
  auto const spent = sum(steps.integers("dur_forward_ns")) + sum(steps.integers("dur_backward_ns"));
  return spent / static_cast<double>(steps.rows);
}

/// How unequal workers are: in the time that they compute, and in what they do.
void add_inequality(Ranks const& workers, RunSummary& summary) {
  h5::Reals computing, samples;
  for (auto const* rank : workers) {
    computing.push_back(computing_ns(*rank));
    samples.push_back(sum(rank->table(trace::steps_table()).integers("samples")));
  }
  if (workers.size() < 2 || known_of(computing).size() < computing.size()) return;
  auto const [quickest, slowest] = std::ranges::minmax(computing);
  if (quickest > 0) summary.compute_ratio = slowest / quickest;
  summary.fewest_samples_share = std::ranges::min(samples) / mean_known(samples);
}

/// The parts of the exposed communication, as the sampled steps have them. On a GPU, where the host
/// submits collectives ahead, they are not known.
void add_exposed_parts(Ranks const& workers, Ranks const& servers, RunFacts const& facts,
                       RunSummary& summary) {
  trace::ExposedTime time;
  bool const all_ranks = facts.ranks == 0 || facts.ranks == summary.ranks;
  bool const on_host = std::ranges::all_of(workers, [&](RankTrace const* rank) {
    return facts.traced_data_bytes_of(rank->rank()) == std::max<std::int64_t>(facts.data_bytes, 0);
  });
  if (all_ranks && !servers.empty())
    time = trace::exposed_to_servers(workers, servers);
  else if (all_ranks && on_host)
    time = trace::exposed_to_collectives(workers);
  auto const whole = static_cast<double>(time.total());
  auto const part = [&](std::int64_t ns) {
    if (summary.exposed_share == 0) return 0.0;
    return whole > 0 ? summary.exposed_share * static_cast<double>(ns) / whole : unknown;
  };
  summary.exposed_transfer_share = part(time.transfer);
  summary.exposed_waiting_share = part(time.waiting);
  summary.exposed_server_share = part(time.server);
}

/// Samples of all ranks in the epochs up to `last`.
double samples_until(std::vector<RankTrace> const& ranks, std::int64_t last) {
  std::int64_t samples = 0;
  for (auto const& rank : ranks) {
    auto const& steps = rank.table(trace::steps_table());
    auto const &epochs = steps.integers("epoch"), &made = steps.integers("samples");
    for (std::size_t i = 0; i < made.size(); ++i) samples += epochs[i] <= last ? made[i] : 0;
  }
  return static_cast<double>(samples);
}

/// Images of the epochs that have ended whose gradients were applied: each rank has recorded those
/// of all.
double applied_images(h5::TableData const& epochs) {
  auto const &rates = epochs.reals("images_per_s"), &times = epochs.reals("time_s");
  double images = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) images += std::round(rates[i] * times[i]);
  return images;
}

/// From epochs if there are any; a run killed in its first epoch has only steps.
void add_rates(std::vector<RankTrace> const& ranks, RunSummary& summary) {
  double slowest = 0;
  for (auto const& rank : ranks) {
    double const epochs_s = sum(rank.table(trace::epochs_table()).reals("time_s"));
    double const steps_s = sum(rank.table(trace::steps_table()).integers("dur_step_ns")) * 1e-9;
    slowest = std::max(slowest, epochs_s > 0 ? epochs_s : steps_s);
  }
  if (slowest <= 0) return;
  auto const& epochs = ranks.front().table(trace::epochs_table());
  auto const last = epochs.rows > 0 ? std::ranges::max(epochs.integers("epoch"))
                                    : std::numeric_limits<std::int64_t>::max();
  auto const made = samples_until(ranks, last);
  auto const known = epochs.rows > 0 ? applied_images(epochs) : unknown;
  auto const applied = std::isfinite(known) ? known : made;
  summary.train_time_s = slowest;
  summary.applied_share = applied / made;
  summary.images_per_s = applied / slowest;
}

void add_wall_time(RunFacts const& facts, RunSummary& summary) {
  if (!(facts.wall_time_s > 0)) return;
  summary.wall_time_s = facts.wall_time_s;
  summary.wall_images_per_s = summary.images_per_s * summary.train_time_s / facts.wall_time_s;
}

/// The first step is left out because it allocates, unless there are only one or two.
double median_but_first(h5::Integers const& values) {
  std::vector<double> later(values.begin(), values.end());
  if (later.size() > 2) later.erase(later.begin());
  return median(std::move(later));
}

/// A server that is updated by pushes of single workers.
bool is_asynchronous(std::vector<RankTrace> const& ranks) {
  return std::ranges::any_of(ranks, [](auto const& rank) {
    auto const& workers = rank.table(trace::ps_table()).integers("worker");
    return std::ranges::any_of(workers, [](auto worker) { return worker >= 0; });
  });
}

/// Of asynchronous workers, where it is known: they share the steps, and may make several pushes of
/// fewer samples in place of one.
std::optional<std::int64_t> shared_batch(std::vector<RankTrace> const& ranks,
                                         RunFacts const& facts) {
  bool const shared_out = facts.global_batch > 0 && is_asynchronous(ranks);
  return shared_out ? std::optional(facts.global_batch) : std::nullopt;
}

void add_steady_rate(Ranks const& workers, std::optional<std::int64_t> shared_batch,
                     RunSummary& summary) {
  double rate = 0, batch = 0;
  for (auto const* rank : workers) {
    auto const& steps = rank->table(trace::steps_table());
    if (steps.rows == 0) continue;
    auto const samples = median_but_first(steps.integers("samples"));
    batch += samples;
    rate += samples / (median_but_first(steps.integers("dur_step_ns")) * 1e-9);
  }
  if (!(rate > 0)) return;
  summary.steady_images_per_s = rate * summary.applied_share;
  summary.steady_step_s = (shared_batch ? static_cast<double>(*shared_batch) : batch) / rate;
}

/// Synchronous workers all make every step, so the first worker's number counts; of asynchronous
/// ones their sum, in global batches.
std::int64_t steps_of(std::vector<RankTrace> const& ranks, RunFacts const& facts) {
  std::int64_t samples = 0, made = 0;
  for (auto const& rank : ranks) {
    auto const& steps = rank.table(trace::steps_table());
    samples += static_cast<std::int64_t>(sum(steps.integers("samples")));
    if (made == 0) made = steps.rows;
  }
  auto const batch = shared_batch(ranks, facts);
  return batch ? samples / *batch : made;
}

// ---- learning -----------------------------------------------------------------------------------

std::vector<CurvePoint> curve_of(RankTrace const& rank) {
  auto const& epochs = rank.table(trace::epochs_table());
  std::vector<CurvePoint> curve;
  double time_s = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(epochs.rows); ++i) {
    time_s += epochs.reals("time_s")[i];
    curve.push_back({epochs.integers("epoch")[i], time_s, epochs.reals("train_loss")[i],
                     epochs.reals("test_loss")[i], epochs.reals("test_accuracy")[i]});
  }
  return curve;
}

double bytes_sent(RankTrace const& rank) {
  auto const& epochs = rank.table(trace::epochs_table());
  return epochs.rows == 0 ? unknown : sum(epochs.integers("comm_bytes"));
}

double mean_bytes_sent(Ranks const& workers) {
  h5::Reals sent;
  for (auto const* rank : workers) sent.push_back(bytes_sent(*rank));
  return mean_known(sent);
}

double total_bytes_sent(std::vector<RankTrace> const& ranks) {
  double sent = 0;
  for (auto const& rank : ranks) sent += bytes_sent(rank);
  return sent;
}

// ---- memory and devices -------------------------------------------------------------------------

/// Without the data set, of which a rank on a CPU has recorded so many bytes as workspace: ranks on
/// GPUs have recorded none, and plans have none.
std::vector<gpu::MemoryUse> samples_of(RankTrace const& rank, std::int64_t data_bytes) {
  auto const& table = rank.table(trace::memory_breakdown_table());
  std::vector<gpu::MemoryUse> samples(static_cast<std::size_t>(table.rows));
  for (std::size_t i = 0; i < gpu::memory_categories; ++i) {
    auto const& column = table.integers(std::string(gpu::memory_category_names[i]));
    for (std::size_t row = 0; row < samples.size(); ++row) samples[row].bytes[i] = column[row];
  }
  for (auto& use : samples) {
    auto& workspace = use[gpu::MemoryCategory::workspace];
    workspace -= std::min(workspace, data_bytes);
  }
  return samples;
}

gpu::MemoryUse peak_of(RankTrace const& rank, std::int64_t data_bytes) {
  gpu::MemoryUse peak;
  for (auto const& use : samples_of(rank, data_bytes))
    if (use.total() > peak.total()) peak = use;
  return peak;
}

/// Batches, ready and in use: everything in the workspace when a backward pass begins. Samples are
/// taken then, except the last one of an epoch, which is its peak.
double batch_bytes_of(RankTrace const& rank, std::int64_t data_bytes) {
  auto const samples = samples_of(rank, data_bytes);
  if (samples.size() < 2) return unknown;
  using gpu::MemoryCategory;
  auto const workspace = [](auto const& use) { return use[MemoryCategory::workspace]; };
  return static_cast<double>(std::ranges::min(samples, {}, workspace)[MemoryCategory::workspace]);
}

/// Peaks of the rank, the worker and the server with the most, and the sum of all ranks.
void add_memory(std::vector<RankTrace> const& ranks, RunFacts const& facts, RunSummary& summary) {
  double together = 0, whole = 0;
  for (auto const& rank : ranks) {
    auto const data_bytes = facts.traced_data_bytes_of(rank.rank());
    auto const peak = peak_of(rank, data_bytes);
    together += peak.total() > 0 ? static_cast<double>(peak.total()) : unknown;
    if (peak.total() > 0) whole = std::max(whole, static_cast<double>(peak.total() + data_bytes));
    if (peak.total() > summary.peak.total()) summary.peak = peak;
    auto& of_role = is_server(rank) ? summary.server_peak : summary.worker_peak;
    if (peak.total() <= of_role.total()) continue;
    of_role = peak;
    if (!is_server(rank)) summary.worker_batch_bytes = batch_bytes_of(rank, data_bytes);
  }
  summary.total_peak_bytes = together;
  if (whole > 0) summary.whole_peak_bytes = whole;
  if (facts.data_bytes >= 0) summary.data_set_bytes = static_cast<double>(facts.data_bytes);
}

/// A column of /device, from the begin of the first step to the end of the last.
h5::Reals while_training(RankTrace const& rank, std::string const& column) {
  auto const& steps = rank.table(trace::steps_table());
  auto const& device = rank.table(trace::device_table());
  h5::Reals chosen;
  if (steps.rows == 0) return chosen;
  auto const& times = device.integers("t_ns");
  auto const& values = device.reals(column);
  auto const begin = steps.integers("t_begin_ns").front();
  auto const end = steps.integers("t_begin_ns").back() + steps.integers("dur_step_ns").back();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (times[i] >= begin && times[i] <= end) chosen.push_back(values[i]);
  return chosen;
}

/// Standard deviation; NaN for fewer than two values.
double deviation(h5::Reals const& values) {
  auto const known = known_of(values);
  if (known.size() < 2) return unknown;
  double const middle = mean_known(known);
  double squares = 0;
  for (double const value : known) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(known.size()));
}

/// The share of what the allocator held that no tensor filled, even at the peak of tensors.
double unfilled_share(RankTrace const& rank) {
  auto const& epochs = rank.table(trace::epochs_table());
  auto const held = greatest_known(epochs.reals("mem_peak_reserved_B"));
  if (!(held > 0)) return unknown;
  auto const filled = std::ranges::max(epochs.integers("mem_peak_allocated_B"));
  return std::max(0.0, 1 - static_cast<double>(filled) / held);
}

void add_devices(Ranks const& workers, RunSummary& summary) {
  h5::Reals means, deviations, used, used_deviations, reserved, unfilled;
  double energy_J = 0;
  for (auto const* rank : workers) {
    auto const& epochs = rank->table(trace::epochs_table());
    auto const utilization = while_training(*rank, "utilization");
    means.push_back(mean_known(utilization));
    deviations.push_back(deviation(utilization));
    used.push_back(greatest_known(rank->table(trace::device_table()).reals("memory_used_B")));
    used_deviations.push_back(deviation(while_training(*rank, "memory_used_B")));
    reserved.push_back(greatest_known(epochs.reals("mem_peak_reserved_B")));
    unfilled.push_back(unfilled_share(*rank));
    auto const energies = known_of(epochs.reals("energy_J"));
    energy_J += energies.empty() ? unknown : sum(energies);
  }
  summary.utilization = mean_known(means);
  summary.utilization_sd = mean_known(deviations);
  summary.device_used_bytes = greatest_known(used);
  summary.device_used_sd_bytes = mean_known(used_deviations);
  summary.unfilled_share = greatest_known(unfilled);
  summary.reserved_bytes = greatest_known(reserved);
  if (!workers.empty()) summary.energy_J = energy_J;
}

// ---- servers ------------------------------------------------------------------------------------

/// Empty if there are no servers.
std::optional<ServerSummary> servers_of(std::vector<RankTrace> const& ranks) {
  ServerSummary summary;
  double depths = 0, whole_s = 0;
  for (auto const& rank : ranks) {
    auto const& updates = rank.table(trace::ps_table());
    if (updates.rows == 0) continue;
    summary.updates =
        std::max(summary.updates, std::ranges::max(updates.integers("applied_version")));
    summary.pushes += updates.rows;
    summary.pulls += static_cast<std::int64_t>(sum(updates.integers("pulled")));
    summary.dropped += static_cast<std::int64_t>(sum(updates.integers("dropped")));
    summary.overflowed += static_cast<std::int64_t>(sum(updates.integers("overflowed")));
    summary.bytes += static_cast<std::int64_t>(sum(updates.integers("bytes")));
    for (auto const lag : updates.integers("lag")) summary.lags.add(std::max<std::int64_t>(lag, 0));
    depths += sum(updates.integers("queue_depth"));
    summary.busy_s += sum(updates.integers("dur_busy_ns")) * 1e-9;
    whole_s += sum(rank.table(trace::epochs_table()).reals("time_s"));
  }
  if (summary.pushes == 0) return std::nullopt;
  summary.queue_depth = depths / static_cast<double>(summary.pushes);
  summary.busy_share = whole_s > 0 ? summary.busy_s / whole_s : unknown;
  return summary;
}

RankSummary summarise(RankTrace const& rank, RunFacts const& facts) {
  RankSummary summary{.rank = rank.rank(),
                      .serves = is_server(rank),
                      .comm_bytes = bytes_sent(rank),
                      .peak = peak_of(rank, facts.traced_data_bytes_of(rank.rank()))};
  add_mean_step(rank, summary);
  return summary;
}

}  // namespace

RunSummary summarise(std::string const& name, trace::RunTraces const& traces,
                     RunFacts const& facts) {
  auto const& first = traces.ranks.front();
  RunSummary summary{.name = name,
                     .strategy = text_of(first.provenance, "strategy"),
                     .model = text_of(first.provenance, "model"),
                     .dataset = text_of(first.provenance, "dataset_name"),
                     .ranks = static_cast<int>(std::max(traces.world, std::ssize(traces.ranks))),
                     .status = status_of(traces.ranks),
                     .steps = steps_of(traces.ranks, facts)};
  Ranks workers, servers;
  for (auto const& rank : traces.ranks) (is_server(rank) ? servers : workers).push_back(&rank);
  add_steps(traces.ranks, summary);
  add_exposed_parts(workers, servers, facts, summary);
  bool const whole = std::ssize(traces.ranks) >= traces.world;
  if (whole) {
    add_rates(traces.ranks, summary);
    add_steady_rate(workers, shared_batch(traces.ranks, facts), summary);
    summary.total_sent_bytes = total_bytes_sent(traces.ranks);
  }
  add_wall_time(facts, summary);
  summary.labels = facts.labels;
  if (facts.train_labels > 0)
    summary.epoch_s = static_cast<double>(facts.train_labels) / summary.steady_images_per_s;
  if (facts.train_flops > 0 && facts.peak_flops > 0)
    summary.mfu = summary.steady_images_per_s * facts.train_flops / facts.peak_flops;
  if (facts.sent_per_step >= 0) summary.sent_per_step = static_cast<double>(facts.sent_per_step);
  bool const knows_data = facts.problem.empty();  // which is in the peaks of ranks on a CPU
  if (knows_data) add_memory(traces.ranks, facts, summary);
  add_devices(workers, summary);
  if (!whole) summary.total_peak_bytes = summary.energy_J = RunSummary::unknown;
  add_inequality(workers, summary);
  if (facts.device_memory > 0)
    summary.device_memory_bytes = static_cast<double>(facts.device_memory);
  summary.overlap_share = overlap_share(workers);
  summary.comm_bytes = mean_bytes_sent(workers);
  summary.servers = servers_of(traces.ranks);
  summary.curve = curve_of(first);
  for (auto const& rank : traces.ranks) {
    summary.by_rank.push_back(summarise(rank, facts));
    if (!knows_data) summary.by_rank.back().peak = {};
  }
  auto const& accuracies = first.table(trace::epochs_table()).reals("test_accuracy");
  summary.train_loss = last_known(first.table(trace::epochs_table()).reals("train_loss"));
  summary.test_accuracy = last_known(accuracies);
  summary.test_loss = last_known(first.table(trace::epochs_table()).reals("test_loss"));
  if (facts.bytes_per_token > 0)
    summary.bits_per_byte = summary.test_loss / std::numbers::ln2 / facts.bytes_per_token;
  if (!accuracies.empty()) summary.first_epoch_accuracy = accuracies.front();
  return summary;
}

}  // namespace stratagem
