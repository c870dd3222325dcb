#include "trace/validate.hpp"

#include <cmath>
#include <cstdlib>

#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "trace/phase.hpp"

namespace stratagem::trace {
namespace {

/// Keeps only a few lines per kind of problem, so that the report of a broken file stays readable.
class Findings {
 public:
  void require(bool holds, std::string const& kind, std::string const& detail) {
    if (holds) return;
    auto const seen = ++counts_[kind];
    if (seen <= 3) lines_.push_back(kind + ": " + detail);
  }
  std::vector<std::string> lines() const {
    auto lines = lines_;
    for (auto const& [kind, count] : counts_)
      if (count > 3) lines.push_back(str(kind, ": and ", count - 3, " more"));
    return lines;
  }

 private:
  std::map<std::string, int> counts_;
  std::vector<std::string> lines_;
};

void check_steps(h5::TableData const& steps, Findings& findings) {
  auto const& number = steps.integers("step");
  auto const& begin = steps.integers("t_begin_ns");
  auto const& whole = steps.integers("dur_step_ns");
  for (std::size_t i = 0; i < static_cast<std::size_t>(steps.rows); ++i) {
    auto const row = str("row ", i);
    if (i > 0) {
      findings.require(number[i] > number[i - 1], "/steps step does not increase", row);
      findings.require(begin[i] >= begin[i - 1], "/steps t_begin_ns goes back", row);
    }
    std::int64_t sum = 0;
    for (auto name : phase_names) {
      auto const duration = steps.integers(str("dur_", name, "_ns"))[i];
      findings.require(duration >= 0, "/steps has a negative duration",
                       row + " " + std::string(name));
      sum += duration;
    }
    findings.require(std::llabs(sum - whole[i]) <= whole[i] / 100,
                     "/steps phases do not add up to dur_step_ns within 1 %",
                     str(row, ": ", sum, " of ", whole[i], " ns"));
    findings.require(steps.integers("samples")[i] >= 0, "/steps samples negative", row);
  }
}

/// Every push is in a version or was dropped, versions follow each other without a gap, and the
/// base versions of a worker never decrease. If chunks have their own versions, this holds for each
/// chunk.
void check_updates(h5::TableData const& updates, Findings& findings) {
  struct Versions {
    std::int64_t met = 0;                        // version when the last push came
    std::map<std::int64_t, std::int64_t> bases;  // by worker, of its last push
  };
  std::map<std::int64_t, Versions> by_chunk;
  for (std::size_t i = 0; i < static_cast<std::size_t>(updates.rows); ++i) {
    auto const row = str("row ", i);
    auto& versions = by_chunk[updates.integers("chunk")[i]];
    auto const base = updates.integers("base_version")[i];
    auto const lag = updates.integers("lag")[i];
    // Each attempt begins with the first version again.
    if (base == 0 && lag == 0) versions = {};
    auto const met =
        updates.integers("applied_version")[i] - (updates.integers("dropped")[i] == 0 ? 1 : 0);
    findings.require(met == versions.met || met == versions.met + 1, "/ps versions have a gap",
                     row);
    findings.require(updates.integers("overflowed")[i] <= updates.integers("dropped")[i],
                     "/ps has a push that overflowed and was applied", row);
    findings.require(lag >= 0 && lag == met - base, "/ps lag is not that of the versions", row);
    versions.met = met;
    auto& last = versions.bases[updates.integers("worker")[i]];
    findings.require(base >= last, "/ps base_version of a worker goes back", row);
    last = base;
    findings.require(updates.integers("t_ready_ns")[i] <= updates.integers("t_seen_ns")[i] &&
                         updates.integers("t_seen_ns")[i] <= updates.integers("t_applied_ns")[i],
                     "/ps times are out of order", row);
  }
}

void check_spans(RankTrace const& trace, Findings& findings) {
  auto const& spans = trace.table(spans_table());
  auto const names = trace.table(names_table()).rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spans.rows); ++i) {
    auto const row = str("row ", i);
    auto const name = spans.integers("name_id")[i];
    auto const lane = spans.integers("lane")[i];
    findings.require(name >= 0 && name < names, "/spans name_id points outside /names", row);
    findings.require(lane >= 0 && lane < static_cast<std::int64_t>(lanes), "/spans lane unknown",
                     row);
    findings.require(spans.integers("t_end_ns")[i] >= spans.integers("t_begin_ns")[i],
                     "/spans ends before it begins", row);
    findings.require(spans.integers("bytes")[i] >= 0, "/spans bytes negative", row);
  }
}

void check_memory(RankTrace const& trace, Findings& findings) {
  auto const& memory = trace.table(memory_table());
  auto const& breakdown = trace.table(memory_breakdown_table());
  auto const rows = static_cast<std::size_t>(std::min(memory.rows, breakdown.rows));
  for (std::size_t i = 0; i < rows; ++i) {
    std::int64_t sum = 0;
    for (auto name : gpu::memory_category_names) sum += breakdown.integers(std::string(name))[i];
    auto const allocated = memory.integers("allocated_B")[i];
    findings.require(std::llabs(sum - allocated) <= allocated / 50,
                     "/memory categories do not add up to allocated_B within 2 %",
                     str("row ", i, ": ", sum, " of ", allocated, " B"));
  }
}

void check_events(RankTrace const& trace, Findings& findings) {
  auto const& events = trace.table(events_table());
  auto const names = trace.table(names_table()).rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(events.rows); ++i)
    for (auto const* column : {"name_id", "text_id"}) {
      auto const id = events.integers(column)[i];
      findings.require(id >= 0 && id < names, str("/events ", column, " points outside /names"),
                       str("row ", i));
    }
}

}  // namespace

std::vector<std::string> problems_of(RankTrace const& trace) {
  Findings findings;
  for (auto const* key : {"rank", "world"})
    findings.require(trace.process.contains(key), "/process lacks an attribute", key);
  for (auto const* key : {"version", "config"})
    findings.require(trace.provenance.contains(key), "/provenance lacks an attribute", key);
  findings.require(trace.table(status_table()).rows > 0, "/status is empty",
                   "no row was ever written");
  findings.require(!trace.closed_cleanly || trace.status != Status::running,
                   "/status says running in a closed file", "");
  check_steps(trace.table(steps_table()), findings);
  check_updates(trace.table(ps_table()), findings);
  check_spans(trace, findings);
  check_memory(trace, findings);
  check_events(trace, findings);
  return findings.lines();
}

}  // namespace stratagem::trace
