#include "trace/chrome_trace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "trace/clock_map.hpp"
#include "trace/phase.hpp"

namespace stratagem {
namespace {

using nlohmann::json;
using trace::ClockMap;
using trace::RankTrace;

/// Something with a duration [ns, rank 0's clock].
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::string name;
  json arguments;
};

/// Slices of one kind.
struct Track {
  std::string name;
  std::vector<Slice> slices;
};

Track step_track(RankTrace const& rank, ClockMap const& clock) {
  auto const& table = rank.table(trace::steps_table());
  Track track{.name = "steps", .slices = {}};
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    auto const begin = table.integers("t_begin_ns")[row];
    json arguments{{"epoch", table.integers("epoch")[row]},
                   {"samples", table.integers("samples")[row]}};
    for (auto const phase : trace::phase_names)
      arguments[str(phase, "_ms")] =
          static_cast<double>(table.integers(str("dur_", phase, "_ns"))[row]) * 1e-6;
    track.slices.push_back({clock(begin), clock(begin + table.integers("dur_step_ns")[row]),
                            str("step ", table.integers("step")[row]), std::move(arguments)});
  }
  return track;
}

std::vector<Track> lane_tracks(RankTrace const& rank, ClockMap const& clock) {
  auto const& table = rank.table(trace::spans_table());
  auto const& names = rank.table(trace::names_table());
  std::vector<Track> tracks;
  for (auto const lane : trace::lane_names) tracks.push_back({std::string(lane), {}});
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    auto const lane = table.integers("lane")[row], name = table.integers("name_id")[row];
    if (lane < 0 || lane >= static_cast<std::int64_t>(trace::lanes)) continue;
    json arguments{{"step", table.integers("step")[row]}};
    if (auto const bytes = table.integers("bytes")[row]; bytes > 0) arguments["bytes"] = bytes;
    if (auto const peer = table.integers("peer")[row]; peer >= 0) arguments["peer"] = peer;
    tracks[static_cast<std::size_t>(lane)].slices.push_back(
        {clock(table.integers("t_begin_ns")[row]), clock(table.integers("t_end_ns")[row]),
         name >= 0 && name < names.rows ? names.texts("name")[static_cast<std::size_t>(name)]
                                        : str("name ", name),
         std::move(arguments)});
  }
  return tracks;
}

/// A server's updates, from their announcement until they were applied, with one track per worker.
std::vector<Track> update_tracks(RankTrace const& rank, ClockMap const& clock) {
  auto const& table = rank.table(trace::ps_table());
  std::map<std::int64_t, Track> by_worker;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    auto const worker = table.integers("worker")[row];
    auto& track = by_worker[worker];
    track.name = worker < 0 ? "updates" : str("updates by worker ", worker);
    track.slices.push_back(
        {clock(table.integers("t_ready_ns")[row]),
         clock(table.integers("t_applied_ns")[row]),
         str(table.integers("dropped")[row] != 0 ? "dropped " : "version ",
             table.integers("applied_version")[row]),
         {{"step", table.integers("step")[row]},
          {"lag", table.integers("lag")[row]},
          {"weight", table.reals("weight")[row]},
          {"queue_depth", table.integers("queue_depth")[row]},
          {"busy_ms", static_cast<double>(table.integers("dur_busy_ns")[row]) * 1e-6},
          {"bytes", table.integers("bytes")[row]}}});
  }
  std::vector<Track> tracks;
  for (auto& [_, track] : by_worker) tracks.push_back(std::move(track));
  return tracks;
}

/// Puts slices that overlap in time, such as concurrent transfers, into separate rows. In one row,
/// viewers draw only slices that follow or enclose each other.
std::vector<std::vector<Slice>> rows_of(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](auto const& a, auto const& b) { return a.begin < b.begin; });
  std::vector<std::vector<Slice>> rows;
  for (auto& slice : slices) {
    auto const free = std::find_if(rows.begin(), rows.end(),
                                   [&](auto const& row) { return row.back().end <= slice.begin; });
    if (free == rows.end())
      rows.push_back({std::move(slice)});
    else
      free->push_back(std::move(slice));
  }
  return rows;
}

/// Writes the events of one rank after another, separated by commas.
class EventWriter {
 public:
  EventWriter(std::ostream& out, std::int64_t origin) : out_(out), origin_(origin) {}

  void begin_rank(RankTrace const& rank);
  void write(Track const& track);
  void write_counters(RankTrace const& rank, ClockMap const& clock);

 private:
  double microseconds(std::int64_t ns) const { return static_cast<double>(ns) * 1e-3; }
  void event(json fields);
  void metadata(char const* what, json arguments, int thread);

  std::ostream& out_;
  std::int64_t origin_;  ///< time of the first event [ns]
  int process_ = 0, threads_ = 0;
  bool first_ = true;
};

void EventWriter::event(json fields) {
  fields["pid"] = process_;
  out_ << (first_ ? "\n" : ",\n") << fields.dump(-1, ' ', false, json::error_handler_t::replace);
  first_ = false;
}

void EventWriter::metadata(char const* what, json arguments, int thread) {
  event({{"ph", "M"}, {"name", what}, {"tid", thread}, {"args", std::move(arguments)}});
}

void EventWriter::begin_rank(RankTrace const& rank) {
  process_ = rank.rank();
  threads_ = 0;
  auto const host = rank.process.find("host");
  auto const* name = host == rank.process.end() ? nullptr : std::get_if<std::string>(&host->second);
  auto const title = str("rank ", process_, name != nullptr ? " on " + *name : "");
  metadata("process_name", {{"name", title}}, 0);
  metadata("process_sort_index", {{"sort_index", process_}}, 0);
}

void EventWriter::write(Track const& track) {
  int place = 0;
  for (auto const& row : rows_of(track.slices)) {
    int const thread = ++threads_;
    ++place;
    metadata("thread_name", {{"name", place == 1 ? track.name : str(track.name, " ", place)}},
             thread);
    metadata("thread_sort_index", {{"sort_index", thread}}, thread);
    for (auto const& slice : row)
      event({{"ph", "X"},
             {"cat", track.name},
             {"name", slice.name},
             {"tid", thread},
             {"ts", microseconds(slice.begin - origin_)},
             {"dur", microseconds(slice.end - slice.begin)},
             {"args", slice.arguments}});
  }
}

void EventWriter::write_counters(RankTrace const& rank, ClockMap const& clock) {
  auto counter = [&](char const* name, std::int64_t time, json values) {
    event({{"ph", "C"},
           {"name", name},
           {"ts", microseconds(clock(time) - origin_)},
           {"args", std::move(values)}});
  };
  auto const& memory = rank.table(trace::memory_breakdown_table());
  for (std::size_t row = 0; row < static_cast<std::size_t>(memory.rows); ++row) {
    json values;
    for (auto const category : gpu::memory_category_names)
      values[std::string(category)] = memory.integers(std::string(category))[row];
    counter("live memory [B]", memory.integers("t_ns")[row], std::move(values));
  }
  auto const& device = rank.table(trace::device_table());
  for (std::size_t row = 0; row < static_cast<std::size_t>(device.rows); ++row)
    for (auto const* column : {"utilization", "power_W"})
      if (auto const value = device.reals(column)[row]; std::isfinite(value))
        counter(column, device.integers("t_ns")[row], {{column, value}});
}

struct RankTracks {
  RankTrace const& rank;
  ClockMap clock;
  std::vector<Track> tracks;
};

RankTracks tracks_of(RankTrace const& rank) {
  ClockMap const clock(rank.table(trace::clock_table()));
  std::vector<Track> tracks{step_track(rank, clock)};
  for (auto& track : lane_tracks(rank, clock)) tracks.push_back(std::move(track));
  for (auto& track : update_tracks(rank, clock)) tracks.push_back(std::move(track));
  return {rank, clock, std::move(tracks)};
}

std::int64_t earliest(std::vector<RankTracks> const& ranks) {
  auto first = std::numeric_limits<std::int64_t>::max();
  for (auto const& rank : ranks) {
    for (auto const& track : rank.tracks)
      for (auto const& slice : track.slices) first = std::min(first, slice.begin);
    for (auto const* table : {&trace::memory_table(), &trace::device_table()})
      for (auto const time : rank.rank.table(*table).integers("t_ns"))
        first = std::min(first, rank.clock(time));
  }
  return first;
}

}  // namespace

void write_chrome_trace(trace::RunTraces const& traces, std::ostream& out) {
  std::vector<RankTracks> ranks;
  for (auto const& rank : traces.ranks) ranks.push_back(tracks_of(rank));
  EventWriter writer(out, earliest(ranks));
  out << R"({"displayTimeUnit":"ms","traceEvents":[)";
  for (auto const& rank : ranks) {
    writer.begin_rank(rank.rank);
    for (auto const& track : rank.tracks) writer.write(track);
    writer.write_counters(rank.rank, rank.clock);
  }
  out << "\n]}\n";
}

}  // namespace stratagem
