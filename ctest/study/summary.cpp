#include "study/summary.hpp"

#include <cmath>
#include <numbers>
#include <set>
#include <span>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "study/measures.hpp"
#include "study/study_table.hpp"
#include "support/traces.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t ms = 1'000'000, MiB = 1 << 20;

/// Three steps of 10, 20 and 60 ms, `exposed` of each waiting for communication; two epochs.
trace::RankTrace sample(int rank, double exposed_ms, double epoch_s) {
  auto trace = empty_trace(rank);
  std::int64_t step = 0;
  for (double const duration : {10, 60, 20})
    add_row(trace, "/steps",
            {{"step", static_cast<double>(step++)},
             {"samples", 32},
             {"dur_step_ns", duration * ms},
             {"dur_forward_ns", (duration - exposed_ms) * ms},
             {"dur_comm_exposed_ns", exposed_ms * ms}});
  add_row(trace, "/epochs", {{"time_s", epoch_s}, {"train_loss", 2}, {"test_accuracy", 0.75}});
  add_row(trace, "/epochs", {{"time_s", epoch_s}, {"train_loss", 1}});
  return trace;
}

nlohmann::json json_of(RunSummary const& summary) {
  return nlohmann::json::parse(study_json({{.summary = summary}})).at("cells").at(0);
}

TEST(Summary, NumbersFollowFromTheTraces) {
  trace::RunTraces traces{{sample(0, 3, 0.5), sample(1, 6, 0.6)}, {}};
  add_row(traces.ranks[0], "/memory/breakdown",
          {{"parameters", 2.0 * MiB}, {"activations", 5.0 * MiB}});
  add_row(traces.ranks[1], "/memory/breakdown",
          {{"parameters", 2.0 * MiB}, {"activations", 7.0 * MiB}});
  add_row(traces.ranks[1], "/memory/breakdown", {{"workspace", 8.0 * MiB}});
  auto const summary = summarise("cell", traces);
  EXPECT_EQ(summary.name, "cell");
  EXPECT_EQ(summary.strategy, "ddp");
  EXPECT_EQ(summary.model, "lenet");
  EXPECT_EQ(summary.dataset, "mnist");
  EXPECT_EQ(summary.ranks, 2);
  EXPECT_EQ(summary.steps, 3);
  EXPECT_EQ(summary.status, "complete");
  EXPECT_DOUBLE_EQ(summary.train_time_s, 1.2) << "the slowest rank's";
  EXPECT_DOUBLE_EQ(summary.images_per_s, 6 * 32 / 1.2);
  EXPECT_DOUBLE_EQ(summary.step_ms, 20) << "the median";
  EXPECT_DOUBLE_EQ(summary.exposed_share, 27.0 / 180);
  EXPECT_DOUBLE_EQ(summary.train_loss, 1);
  EXPECT_DOUBLE_EQ(summary.test_accuracy, 0.75) << "the last that is known";
  EXPECT_EQ(summary.peak.total(), 9 * MiB) << "of one moment of one rank";
}

TEST(Summary, ServersAreCountedFromTheirUpdates) {
  trace::RunTraces traces{{sample(0, 3, 0.5), empty_trace(1)}, {}};
  EXPECT_FALSE(summarise("cell", traces).servers.has_value());
  auto& server = traces.ranks[1];
  add_row(server, "/epochs", {{"time_s", 0.5}});
  for (double const lag : {0, 1, 1, 6})
    add_row(server, "/ps",
            {{"applied_version", 7},
             {"lag", lag},
             {"dropped", lag != 1 ? 1 : 0},
             {"overflowed", lag == 0 ? 1 : 0},
             {"pulled", lag == 6 ? 0 : 1},
             {"queue_depth", 2},
             {"dur_busy_ns", 25.0 * ms}});
  auto const summary = summarise("cell", traces);
  ASSERT_TRUE(summary.servers.has_value());
  auto const& servers = *summary.servers;
  EXPECT_EQ(servers.updates, 7);
  EXPECT_EQ(servers.pushes, 4);
  EXPECT_EQ(servers.pulls, 3);
  EXPECT_EQ(servers.dropped, 2);
  EXPECT_EQ(servers.overflowed, 1);
  EXPECT_DOUBLE_EQ(servers.lags.mean(), 2) << "of all, dropped or not";
  EXPECT_DOUBLE_EQ(servers.queue_depth, 2);
  EXPECT_DOUBLE_EQ(servers.busy_share, 0.2);
  EXPECT_NE(summary_text({summary}).find("lag p95"), std::string::npos);
  auto const row = json_of(summary);
  EXPECT_EQ(row.at("lag_max"), 6);
  EXPECT_EQ(row.at("pushes"), 4);
  EXPECT_DOUBLE_EQ(row.at("updates_per_s"), 7) << "in the second that rank 0 trained";
  EXPECT_DOUBLE_EQ(row.at("push_busy_ms"), 25);
  EXPECT_DOUBLE_EQ(row.at("dropped_share"), 0.5);
  EXPECT_EQ(row.at("lag_counts"), nlohmann::json({1, 2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(row.at("by_rank").at(1).at("role"), "server");
  EXPECT_EQ(summary.steps, 3) << "a server makes none";
  EXPECT_EQ(summarise("cell", traces, {.global_batch = 48}).steps, 2) << "96 samples, shared out";
}

TEST(Summary, UpdatesAreVersionsNotPushes) {
  trace::RunTraces traces{{sample(0, 3, 0.5), empty_trace(1)}, {}};
  auto& server = traces.ranks[1];
  // Two chunks with versions of their own; of each, two pushes make an update. The chunk that is
  // behind writes last.
  for (auto const& [chunk, version] : {std::pair{0.0, 1.0}, {0, 1}, {1, 1}, {0, 2}, {0, 2}, {1, 1}})
    add_row(server, "/ps", {{"chunk", chunk}, {"applied_version", version}});
  auto const row = json_of(summarise("cell", traces));
  EXPECT_EQ(row.at("pushes"), 6);
  EXPECT_EQ(row.at("updates"), 2);
  EXPECT_DOUBLE_EQ(row.at("updates_per_s"), 2) << "in one second";
}

TEST(Summary, BytesOfAllRanksIncludeTheServers) {
  trace::RunTraces traces{{sample(0, 3, 0.5), sample(1, 3, 0.5), empty_trace(2)}, {}};
  add_row(traces.ranks[2], "/ps", {{"applied_version", 1}});
  EXPECT_TRUE(std::isnan(summarise("cell", traces).total_sent_bytes)) << "not without the server's";
  add_row(traces.ranks[2], "/epochs", {{"time_s", 0.5}, {"comm_bytes", 600}});
  for (int const worker : {0, 1})
    add_row(traces.ranks[static_cast<std::size_t>(worker)], "/epochs",
            {{"time_s", 0.5}, {"comm_bytes", 90.0 + worker}});
  auto const row = json_of(summarise("cell", traces));
  EXPECT_EQ(row.at("total_sent_B"), 781);
  EXPECT_DOUBLE_EQ(row.at("total_sent_per_step_B"), 781.0 / 3);
  EXPECT_DOUBLE_EQ(row.at("comm_B"), 90.5) << "a worker's";
}

TEST(Summary, ExposedCommunicationIsDividedAsInSampledSteps) {
  trace::RunTraces traces{{sample(0, 3, 0.5), sample(1, 6, 0.6)}, {}};
  EXPECT_TRUE(std::isnan(summarise("cell", traces).exposed_waiting_share)) << "no step was sampled";
  for (auto& rank : traces.ranks) {
    auto& names = rank.tables.at("/names");
    names.columns["name"] = h5::Texts{"comm_exposed", "all_reduce"};
    names.rows = 2;
    double const begin = rank.rank() == 0 ? 0 : 30;
    add_row(rank, "/spans", {{"lane", 0}, {"t_begin_ns", begin}, {"t_end_ns", 45}});
    add_row(rank, "/spans", {{"name_id", 1}, {"lane", 1}, {"t_begin_ns", begin}, {"t_end_ns", 45}});
  }
  auto const row = json_of(summarise("cell", traces));
  EXPECT_DOUBLE_EQ(row.at("exposed_comm_share"), 27.0 / 180);
  EXPECT_DOUBLE_EQ(row.at("exposed_waiting_share"), 27.0 / 180 * 30 / 60);
  EXPECT_DOUBLE_EQ(row.at("exposed_transfer_share"), 27.0 / 180 * 30 / 60);
  EXPECT_EQ(row.at("exposed_server_share"), 0);
  RunFacts const on_gpus{.data_bytes = 100, .traced_data_bytes = {0, 0}};
  EXPECT_TRUE(std::isnan(summarise("cell", traces, on_gpus).exposed_waiting_share));
  RunFacts const more_ranks{.ranks = 3};
  EXPECT_TRUE(std::isnan(summarise("cell", traces, more_ranks).exposed_waiting_share));
  traces.ranks = {sample(0, 0, 0.5), sample(1, 0, 0.5)};
  EXPECT_EQ(json_of(summarise("cell", traces)).at("exposed_waiting_share"), 0) << "of nothing";
}

TEST(Summary, SteadyRatesAreOfMedianStepsButTheFirst) {
  trace::RunTraces const traces{{sample(0, 3, 0.5), sample(1, 6, 0.6)}, {}};
  auto const summary = summarise("cell", traces, {.train_labels = 640, .global_batch = 96});
  EXPECT_EQ(summary.steps, 3);
  // Steps of 10, 60 and 20 ms with 32 samples each; of the last two, the upper one is the median.
  EXPECT_DOUBLE_EQ(summary.steady_images_per_s, 2 * 32 / 0.06);
  EXPECT_DOUBLE_EQ(summary.steady_step_s, 0.06);
  EXPECT_DOUBLE_EQ(summary.epoch_s, 640 / (64 / 0.06));
  EXPECT_DOUBLE_EQ(summary.phase_ms[1], 25.5) << "forward: 27 and 24 ms";
  EXPECT_TRUE(std::isnan(summarise("cell", traces).epoch_s)) << "of an unknown data set";
}

TEST(Summary, AGlobalBatchIsTwoPushesWhereAWorkerMakesTwoOfHalfItsShare) {
  trace::RunTraces traces{{empty_trace(0), empty_trace(1), empty_trace(2)}, {}};
  for (auto& rank : std::span(traces.ranks).first(2))
    for (int push = 0; push < 4; ++push)
      add_row(rank, "/steps", {{"samples", 16}, {"dur_step_ns", 10.0 * ms}});
  add_row(traces.ranks[2], "/ps", {{"worker", 1}, {"applied_version", 1}});
  auto const summary = summarise("cell", traces, {.global_batch = 64});
  EXPECT_EQ(summary.steps, 2);
  EXPECT_DOUBLE_EQ(summary.steady_images_per_s, 2 * 16 / 0.01);
  EXPECT_DOUBLE_EQ(summary.steady_step_s, 0.02);
}

TEST(Summary, TimeIsKnownWithAndWithoutEvaluation) {
  trace::RunTraces const traces{{sample(0, 3, 0.5), sample(1, 6, 0.6)}, {}};
  auto const row = json_of(summarise("cell", traces, {.wall_time_s = 2.4}));
  EXPECT_DOUBLE_EQ(row.at("train_time_s"), 1.2);
  EXPECT_DOUBLE_EQ(row.at("images_per_s"), 160);
  EXPECT_DOUBLE_EQ(row.at("wall_time_s"), 2.4);
  EXPECT_DOUBLE_EQ(row.at("wall_images_per_s"), 80);
}

TEST(Summary, RunsOfTextTellWhatTheirReadersKnow) {
  trace::RunTraces traces{{empty_trace(0)}, {}};
  for (int step = 0; step < 3; ++step)
    add_row(traces.ranks[0], "/steps", {{"samples", 500}, {"dur_step_ns", 100.0 * ms}});
  add_row(traces.ranks[0], "/epochs",
          {{"time_s", 0.3}, {"images_per_s", 5000}, {"test_loss", 2.5}, {"test_accuracy", 0.4}});
  auto const text = summarise("cell", traces,
                              {.labels = "tokens",
                               .train_labels = 15'000,
                               .bytes_per_token = 4,
                               .train_flops = 2e9,
                               .peak_flops = 4e13});
  auto const row = json_of(text);
  EXPECT_DOUBLE_EQ(row.at("perplexity"), std::exp(2.5));
  EXPECT_DOUBLE_EQ(row.at("bits_per_byte"), 2.5 / std::numbers::ln2 / 4);
  EXPECT_DOUBLE_EQ(row.at("mfu"), 0.25);
  EXPECT_DOUBLE_EQ(row.at("epoch_s"), 3);
  auto const images = summarise("cell", traces);
  EXPECT_TRUE(json_of(images).at("perplexity").is_null());
  EXPECT_TRUE(json_of(images).at("mfu").is_null());
  auto const& rate = measure("images_per_s");
  EXPECT_EQ(title_of(rate, {text}), "tokens/s");
  EXPECT_EQ(title_of(rate, {images}), "images/s");
  EXPECT_EQ(title_of(rate, {images, text}), "images or tokens/s");
  EXPECT_NE(summary_text({text}).find("bits/byte"), std::string::npos);
  EXPECT_EQ(summary_text({images}).find("bits/byte"), std::string::npos);
}

TEST(Summary, ImagesThatWereNotAppliedDoNotCount) {
  trace::RunTraces traces{{empty_trace(0), empty_trace(1)}, {}};
  for (auto& rank : traces.ranks) {
    for (double const epoch : {0, 0, 1, 1, 2})
      add_row(rank, "/steps", {{"epoch", epoch}, {"samples", 30}, {"dur_step_ns", 100.0 * ms}});
    // Of 120 images in each of two epochs, 120 and 90; the third epoch has not ended.
    add_row(rank, "/epochs", {{"epoch", 0}, {"time_s", 0.5}, {"images_per_s", 240}});
    add_row(rank, "/epochs", {{"epoch", 1}, {"time_s", 0.7}, {"images_per_s", 90 / 0.7}});
  }
  auto const summary = summarise("cell", traces, {.train_labels = 210});
  EXPECT_DOUBLE_EQ(summary.applied_share, 210.0 / 240);
  EXPECT_DOUBLE_EQ(summary.images_per_s, 210 / 1.2);
  EXPECT_DOUBLE_EQ(summary.steady_images_per_s, 600 * 210.0 / 240);
  EXPECT_DOUBLE_EQ(summary.epoch_s, 0.4) << "at 600 per second, of which an eighth does not count";
  EXPECT_DOUBLE_EQ(summary.steady_step_s, 0.1) << "is made, applied or not";
}

TEST(Summary, WorkersAndServersHaveTheirOwnMemory) {
  trace::RunTraces traces{{sample(0, 0, 1), empty_trace(1)}, {}};
  add_row(traces.ranks[1], "/ps", {{"applied_version", 1}});
  add_row(traces.ranks[0], "/memory/breakdown",
          {{"parameters", 3.0 * MiB}, {"workspace", 1.0 * MiB}});
  add_row(traces.ranks[0], "/memory/breakdown",
          {{"parameters", 3.0 * MiB}, {"workspace", 4.0 * MiB}});
  add_row(traces.ranks[1], "/memory/breakdown",
          {{"parameters", 3.0 * MiB}, {"optimizer", 6.0 * MiB}});
  auto const row = json_of(summarise("cell", traces));
  EXPECT_EQ(row.at("peak_B"), 9 * MiB);
  EXPECT_EQ(row.at("worker_peak_B"), 7 * MiB);
  EXPECT_EQ(row.at("worker_peak_workspace_B"), 4 * MiB);
  EXPECT_EQ(row.at("worker_batches_B"), 1 * MiB);
  EXPECT_EQ(row.at("worker_peak_without_batches_B"), 6 * MiB);
  EXPECT_EQ(row.at("worker_state_B"), 3 * MiB);
  EXPECT_EQ(row.at("server_state_B"), 9 * MiB);
  EXPECT_EQ(row.at("state_B"), 9 * MiB);
  EXPECT_EQ(row.at("total_peak_B"), 16 * MiB);
  auto const unknown = json_of(summarise("cell", traces, {.problem = "no manifest"}));
  for (char const* peak : {"peak_B", "worker_peak_B", "total_peak_B", "whole_peak_B"})
    EXPECT_TRUE(unknown.at(peak).is_null()) << peak << " may have the data set in it";
  traces.world = 3;
  EXPECT_TRUE(json_of(summarise("cell", traces)).at("total_peak_B").is_null())
      << "not without the third rank's";
}

/// Whether a rank computes on a CPU, which has recorded it, or on a GPU, which has not.
TEST(Summary, TheDataSetIsInNoPeak) {
  auto const run = [](std::int64_t data, std::int64_t of_worker) {
    trace::RunTraces traces{{sample(0, 0, 1), empty_trace(1)}, {}};
    add_row(traces.ranks[1], "/ps", {{"applied_version", 1}});
    for (double const scratch : {1, 4})
      add_row(traces.ranks[0], "/memory/breakdown",
              {{"parameters", 3.0 * MiB},
               {"workspace", scratch * MiB + static_cast<double>(of_worker)}});
    add_row(traces.ranks[1], "/memory/breakdown",
            {{"parameters", 6.0 * MiB}, {"workspace", static_cast<double>(data)}});
    return json_of(
        summarise("cell", traces, {.data_bytes = data, .traced_data_bytes = {of_worker, data}}));
  };
  for (auto const of_worker : {std::int64_t{0}, 10 * MiB}) {
    auto const row = run(10 * MiB, of_worker);
    EXPECT_EQ(row.at("worker_peak_B"), 7 * MiB);
    EXPECT_EQ(row.at("worker_peak_workspace_B"), 4 * MiB);
    EXPECT_EQ(row.at("worker_batches_B"), 1 * MiB);
    EXPECT_EQ(row.at("server_peak_B"), 6 * MiB);
    EXPECT_EQ(row.at("peak_B"), 7 * MiB);
    EXPECT_EQ(row.at("total_peak_B"), 13 * MiB);
    EXPECT_EQ(row.at("by_rank").at(0).at("peak_B"), 7 * MiB);
    EXPECT_EQ(row.at("data_set_B"), 10 * MiB);
    EXPECT_EQ(row.at("whole_peak_B"), (of_worker > 0 ? 17 : 16) * MiB);
  }
}

TEST(Summary, DevicesAreAskedWhileTraining) {
  auto rank = sample(0, 0, 1);
  for (auto const& [t, busy] : {std::pair{-5.0, 0.9}, {0.0, 0.2}, {15.0, 0.4}, {500.0, 0.9}})
    add_row(rank, "/device",
            {{"t_ns", t * ms}, {"utilization", busy}, {"memory_used_B", 100 * busy}});
  auto const summary = summarise("cell", {{rank}, {}});
  EXPECT_NEAR(summary.utilization, 0.3, 1e-12);
  EXPECT_NEAR(summary.utilization_sd, 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(summary.device_used_bytes, 90);
  EXPECT_TRUE(std::isnan(summary.energy_J)) << "no device told it";
}

TEST(Summary, MemoryOfTheDeviceIsAShareAndHasASteadiness) {
  auto rank = sample(0, 0, 1);
  for (auto const& [t, used] : {std::pair{-5.0, 90.0}, {0.0, 200.0}, {15.0, 400.0}})
    add_row(rank, "/device", {{"t_ns", t * ms}, {"memory_used_B", used}});
  add_row(rank, "/epochs",
          {{"time_s", 1}, {"mem_peak_allocated_B", 300}, {"mem_peak_reserved_B", 375}});
  auto const row = json_of(summarise("cell", {{rank}, {}}, {.device_memory = 1600}));
  EXPECT_EQ(row.at("device_memory_B"), 1600);
  EXPECT_DOUBLE_EQ(row.at("device_used_share"), 0.25);
  EXPECT_DOUBLE_EQ(row.at("device_used_sd_B"), 100) << "while training";
  EXPECT_NEAR(row.at("unfilled_share").get<double>(), 0.2, 1e-12);
  auto const unknown = json_of(summarise("cell", {{rank}, {}}));
  EXPECT_TRUE(unknown.at("device_used_share").is_null()) << "of older manifests";
}

TEST(Summary, UnequalWorkersAreTold) {
  trace::RunTraces traces{{sample(0, 0, 1), sample(1, 0, 1), empty_trace(2)}, {}};
  add_row(traces.ranks[2], "/ps", {{"applied_version", 1}});
  add_row(traces.ranks[1], "/steps",
          {{"samples", 96}, {"dur_step_ns", 70 * ms}, {"dur_backward_ns", 70 * ms}});
  auto const row = json_of(summarise("cell", traces));
  EXPECT_DOUBLE_EQ(row.at("compute_ratio"), 40.0 / 30);
  EXPECT_DOUBLE_EQ(row.at("fewest_samples_share"), 96.0 / 144) << "of 96 and 192; servers apart";
  traces.ranks.erase(traces.ranks.begin() + 1);
  EXPECT_TRUE(json_of(summarise("cell", traces)).at("compute_ratio").is_null()) << "of one worker";
}

TEST(Summary, MeasuresAreDeclaredOnceAndSayWhatTheyAre) {
  std::set<std::string> names;
  for (auto const& measure : measures()) {
    EXPECT_TRUE(names.insert(measure.name).second) << measure.name;
    EXPECT_FALSE(measure.unit.empty() || measure.meaning.empty()) << measure.name;
  }
  for (auto const shown : {shown_results(), shown_memory(), shown_servers()})
    for (auto const& name : shown) EXPECT_FALSE(measure(name).title.empty()) << name;
}

TEST(Summary, WhatIsNotKnownIsNan) {
  auto const summary = summarise("cell", {{empty_trace(0)}, {}});
  for (double const value : {summary.train_time_s, summary.images_per_s, summary.step_ms,
                             summary.exposed_share, summary.train_loss, summary.test_accuracy})
    EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(summary.peak.total(), 0);
  auto const row = json_of(summary);
  for (auto const& measure : measures())
    EXPECT_TRUE(row.at(measure.name).is_null()) << measure.name;
  EXPECT_TRUE(row.at("curve").empty());
  EXPECT_EQ(row.at("by_rank").size(), 1U);
  EXPECT_TRUE(row.at("lag_counts").empty());
}

TEST(Summary, ARunKilledInItsFirstEpochIsTimedByItsSteps) {
  auto trace = sample(0, 0, 1);
  trace.tables["/epochs"] = empty_trace(0).tables.at("/epochs");
  EXPECT_DOUBLE_EQ(summarise("cell", {{trace}, {}}).train_time_s, 0.09);
}

TEST(Summary, StatusIsTheWorstOfTheRanks) {
  auto status = [](auto change) {
    trace::RunTraces traces{{sample(0, 0, 1), sample(1, 0, 1)}, {}};
    change(traces.ranks[1]);
    return summarise("cell", traces).status;
  };
  EXPECT_EQ(status([](trace::RankTrace&) {}), "complete");
  EXPECT_EQ(status([](auto& rank) { rank.status = trace::Status::failed; }), "failed");
  EXPECT_EQ(status([](auto& rank) { rank.closed_cleanly = false; }), "running or killed");
  EXPECT_EQ(status([](auto& rank) { rank.status = trace::Status::running; }), "running or killed");
}

TEST(Summary, TablesHaveARowPerRunAndPerRank) {
  trace::RunTraces const traces{{sample(0, 3, 0.5), sample(1, 6, 0.6)}, {}};
  auto const table = summary_table({summarise("one", traces), summarise("two", traces)});
  auto const lines = split(table.render(TableFormat::csv), '\n');
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines[0].find("run,strategy,ranks,steps"), 0U);
  EXPECT_NE(lines[0].find(",parameters MiB,gradients MiB,"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[1].find("one,ddp,2,3,75.00,1.0000,1.20,160,20.00,15.0,"), 0U) << lines[1];
  EXPECT_EQ(lines[2].find("two,"), 0U);

  auto const text = phase_table({summarise("one", traces)}).render();
  EXPECT_NE(text.find("27.00"), text.npos) << "mean forward of rank 0\n" << text;
  EXPECT_NE(text.find("24.00"), text.npos) << "mean forward of rank 1\n" << text;
  EXPECT_EQ(split(text, '\n').size(), 5U) << "header, rule, two ranks, end\n" << text;
}

}  // namespace
}  // namespace stratagem
