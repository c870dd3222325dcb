#include <algorithm>
#include <limits>
#include <map>

#include "trace/clock_map.hpp"
#include "trace/exposed/exposed_time.hpp"
#include "trace/exposed/sampled_steps.hpp"

namespace stratagem::trace {
namespace {

constexpr auto never = std::numeric_limits<std::int64_t>::max();

/// A row of /ps, on rank 0's clock.
struct Push {
  std::int64_t worker, chunk, step, lag, base_version, applied_version;
  bool dropped;
  std::int64_t ready, seen, applied;
};

std::vector<Push> pushes_of(RankTrace const& server) {
  auto const& table = server.table(ps_table());
  ClockMap const clock(server.table(clock_table()));
  auto const of = [&](char const* column, std::size_t row) { return table.integers(column)[row]; };
  std::vector<Push> pushes;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row)
    pushes.push_back({of("worker", row), of("chunk", row), of("step", row), of("lag", row),
                      of("base_version", row), of("applied_version", row), of("dropped", row) != 0,
                      clock(of("t_ready_ns", row)), clock(of("t_seen_ns", row)),
                      clock(of("t_applied_ns", row))});
  return pushes;
}

// ---- updates with the gradients of all workers --------------------------------------------------

/// Of all servers: each is waited for.
struct Update {
  std::int64_t lag = 0, ready = 0, seen = 0, applied = 0;
};

std::map<std::int64_t, Update> updates_of(std::vector<std::vector<Push>> const& servers) {
  std::map<std::int64_t, Update> updates;
  for (auto const& pushes : servers)
    for (auto const& push : pushes) {
      auto& update = updates[push.step];
      update = {push.lag, std::max(update.ready, push.ready), std::max(update.seen, push.seen),
                std::max(update.applied, push.applied)};
    }
  return updates;
}

/// `exposed`: by worker, while it waited for this update.
void add(std::vector<Intervals> const& exposed, Update const& update, ExposedTime& sum) {
  auto const in = [](Intervals const& times, std::int64_t begin, std::int64_t end) {
    return length(common(times, united({{begin, end}})));
  };
  std::vector<std::int64_t> arriving;
  for (auto const& times : exposed) {
    sum.waiting += in(times, 0, update.ready);
    arriving.push_back(in(times, update.ready, update.seen));
    sum.server += in(times, update.seen, update.applied);
    sum.transfer += in(times, update.applied, never);
  }
  auto const moving = std::ranges::min(arriving);
  for (auto const whole : arriving) {
    sum.transfer += moving;
    sum.waiting += whole - moving;
  }
}

using Steps = std::map<std::int64_t, SampledStep>;

ExposedTime exposed_to_updates(std::vector<Steps> const& workers,
                               std::map<std::int64_t, Update> const& updates) {
  ExposedTime sum;
  for (auto const& [number, update] : updates) {
    std::vector<Intervals> before, after;
    for (auto const& worker : workers) {
      auto const step = worker.find(number);
      if (step == worker.end()) break;
      before.push_back(step->second.before);
      after.push_back(step->second.after);
    }
    if (after.size() < workers.size()) continue;
    add(after, update, sum);
    // Parameters that a step begins with are those of an earlier update.
    auto const earlier = updates.find(number - 1 - update.lag);
    if (earlier != updates.end()) add(before, earlier->second, sum);
  }
  return sum;
}

// ---- updates with single pushes -----------------------------------------------------------------

/// What a server's pushes mean for a worker.
struct Stretches {
  Intervals held;     ///< from when its push was applied until it was sent a version
  Intervals working;  ///< the server, on its push or on one before it
};

/// When each version of a chunk was made.
using Versions = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

Versions versions_of(std::vector<Push> const& pushes) {
  Versions made;
  for (auto const& push : pushes) {
    if (push.dropped) continue;
    auto& time = made[{push.chunk, push.applied_version}];
    time = std::max(time, push.applied);
  }
  return made;
}

void add(std::vector<Push> const& pushes, std::int64_t worker, Stretches& stretches) {
  auto const made = versions_of(pushes);
  Intervals busy;
  for (auto const& push : pushes) busy.emplace_back(push.seen, push.applied);
  busy = united(std::move(busy));
  std::map<std::int64_t, Push const*> last;  // by chunk
  for (auto const& push : pushes) {
    if (push.worker != worker) continue;
    stretches.working.emplace_back(push.seen, push.applied);
    for (auto const& time : common(united({{push.ready, push.seen}}), busy))
      stretches.working.push_back(time);
    auto const*& before = last[push.chunk];
    auto const version = made.find({push.chunk, push.base_version});
    if (before != nullptr && version != made.end())
      stretches.held.emplace_back(before->applied, std::min(version->second, push.ready));
    before = &push;
  }
}

ExposedTime exposed_to_pushes(std::vector<Steps> const& workers,
                              std::vector<std::vector<Push>> const& servers) {
  ExposedTime sum;
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    Stretches stretches;
    for (auto const& pushes : servers) add(pushes, static_cast<std::int64_t>(worker), stretches);
    auto const held = united(stretches.held);
    stretches.working.insert(stretches.working.end(), held.begin(), held.end());
    auto const either = united(std::move(stretches.working));
    for (auto const& [_, step] : workers[worker])
      for (auto const& exposed : {step.before, step.after}) {
        auto const waiting = length(common(exposed, held));
        auto const not_moving = length(common(exposed, either));
        sum.waiting += waiting;
        sum.server += not_moving - waiting;
        sum.transfer += length(exposed) - not_moving;
      }
  }
  return sum;
}

}  // namespace

ExposedTime exposed_to_servers(std::vector<RankTrace const*> const& workers,
                               std::vector<RankTrace const*> const& servers) {
  std::vector<Steps> steps;
  for (auto const* worker : workers) steps.push_back(sampled_steps(*worker));
  std::vector<std::vector<Push>> pushes;
  bool together = false;
  for (auto const* server : servers) {
    pushes.push_back(pushes_of(*server));
    together = together ||
               std::ranges::any_of(pushes.back(), [](Push const& push) { return push.worker < 0; });
  }
  if (steps.empty()) return {};
  return together ? exposed_to_updates(steps, updates_of(pushes))
                  : exposed_to_pushes(steps, pushes);
}

}  // namespace stratagem::trace
