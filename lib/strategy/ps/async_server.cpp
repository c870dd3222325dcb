#include "strategy/ps/async_server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

constexpr auto nap = 50us;  // an idle server leaves its core to those who compute

bool all_done(std::vector<Work> const& works) {
  return std::ranges::all_of(works, &Work::done);
}

}  // namespace

AsyncPsServer::AsyncPsServer(PsPlan plan, StrategyParts const& parts)
    : PsServer(std::move(plan), parts),
      liveness_(parts.watchdog, workers()),
      pushes_(static_cast<std::size_t>(workers())) {
  auto const count = static_cast<std::size_t>(workers());
  for (std::size_t domain = 0; domain < domains_.size(); ++domain)
    timelines_.push_back({.clock = ServerClock(plan_.policy, workers()),
                          .arriving = std::vector<std::vector<Work>>(count),
                          .leaving = std::vector<std::vector<Work>>(count)});
}

void AsyncPsServer::serve(Round const& round) {
  round_ = ShareSequence(round.first_step, round.end_step, workers(), plan_.policy.pushes);
  next_share_ = round_.dealt_at_first();
  requests_ = round.requests;
  parts_.recorder.event(trace::Severity::info, round_event, "");
  auto const begin = monotonic_ns();
  for (auto& timeline : timelines_) timeline.clock.restart();
  for (auto& store : stores_) store.begin_round();
  for (int worker = 0; worker < workers(); ++worker) expect_line(worker);
  while (!timelines_.front().clock.all_finished()) {
    bool moved = false;
    for (int worker = 0; worker < workers(); ++worker) moved = attend(worker) || moved;
    exclude_missing();
    if (moved) continue;
    trace::HeartbeatStatus::Wait const sign(&parts_.recorder.heartbeat(), "gradients");
    std::this_thread::sleep_for(nap);
  }
  std::vector<Work> last;
  for (int worker = 0; worker < workers(); ++worker) {
    for (auto& timeline : timelines_) timeline.leaving[static_cast<std::size_t>(worker)].clear();
    for (auto& store : stores_) store.hand_out(worker, 0);
    std::ranges::move(send_parameters(worker, own_), std::back_inserter(last));
  }
  last.clear();
  counts_.whole_ns += monotonic_ns() - begin;
}

void AsyncPsServer::expect_line(int worker) {
  auto& push = of(worker);
  push.announced = parts_.world.all().receive(push.message, rank_of(worker), line_tag);
  push.is_expected = true;
  liveness_.expect(worker);
}

bool AsyncPsServer::attend(int worker) {
  auto& push = of(worker);
  if (push.is_expected) {
    if (!push.announced.done()) return false;
    read_line(worker);
    return true;
  }
  if (push.untreated == 0 || (scale_.needs_norm() && !push.ended.done())) return false;
  bool moved = false;
  for (std::size_t domain = 0; domain < timelines_.size(); ++domain) {
    auto const& arriving = timelines_[domain].arriving[static_cast<std::size_t>(worker)];
    if (arriving.empty() || !all_done(arriving)) continue;
    apply(domain, worker);
    release(domain);
    moved = true;
  }
  go_on(worker);
  return moved;
}

void AsyncPsServer::read_line(int worker) {
  auto& push = of(worker);
  push.announced.wait_on_host();
  push.is_expected = false;
  push.line = line_from(push.message);
  push.t_ready = monotonic_ns();
  if (push.line.last) {
    if (liveness_.finished(worker)) tell_of_return(worker);
    for (std::size_t domain = 0; domain < timelines_.size(); ++domain) {
      if (timelines_[domain].clock.finish(worker)) stores_[domain].apply_collected();
      release(domain);
    }
    return;
  }
  if (push.line.collectives != in_message(parts_.world.all().collectives().fingerprint()))
    throw mismatch(str("those of the worker on rank ", rank_of(worker),
                       " are not those of its server on rank ", parts_.world.all().rank()));
  for (std::size_t domain = 0; domain < timelines_.size(); ++domain)
    timelines_[domain].arriving[static_cast<std::size_t>(worker)] =
        receive_gradients(worker, domains_[domain].chunks);
  push.untreated = timelines_.size();
  if (scale_.needs_norm())
    push.ended = parts_.world.all().receive(push.end, rank_of(worker), end_tag);
  if (answers()) answer(worker);
}

void AsyncPsServer::answer(int worker) {
  auto& push = of(worker);
  if (push.line.requests.end() || requests_().end()) next_share_ = round_.count();
  PullReply answer{.lag = timelines_.front().clock.lag(worker)};
  if (next_share_ < round_.count()) answer.share = next_share_++;
  push.answered = parts_.world.all().send(to_message(answer), rank_of(worker), answer_tag);
}

PushTrailer AsyncPsServer::end_of(int worker) {
  if (!scale_.needs_norm()) return {.factor = scale_.value()};
  of(worker).ended.wait_on_host();
  return end_from(of(worker).end);
}

void AsyncPsServer::apply(std::size_t domain, int worker) {
  auto& push = of(worker);
  auto& timeline = timelines_[domain];
  auto& store = stores_[domain];
  auto& arriving = timeline.arriving[static_cast<std::size_t>(worker)];
  parts_.recorder.enter(trace::Activity::serve, push.line.step);
  for (auto& work : arriving) work.wait_on_host();
  auto record = record_of(worker, domains_[domain]);
  record.t_seen = monotonic_ns();
  if (liveness_.came(worker)) tell_of_return(worker);
  record.queue_depth =
      std::ranges::count_if(timeline.arriving, [](auto const& works) { return !works.empty(); });
  record.gap = store.gap(worker);
  auto const end = end_of(worker);
  auto const verdict = timeline.clock.push(
      worker, {.step = push.line.step, .usable = end.usable, .pulls = push.line.pulls});
  if (verdict.applied) {
    for (auto const& chunk : domains_[domain].chunks) read_gradient(worker, chunk);
    timeline.lr = push.line.lr;
    store.take(worker, {.lr = timeline.lr, .weight = verdict.weight, .factor = end.factor},
               verdict.completes);
  }
  check_gradients(push.line.step, {worker});
  arriving.clear();
  if (--push.untreated == 0) liveness_.arrived(worker);
  record.base_version = verdict.base_version;
  record.applied_version = verdict.applied_version;
  record.lag = verdict.lag;
  record.weight = verdict.weight;
  record.factor = end.factor;
  record.loss_scale = end.loss_scale;
  record.dropped = !verdict.applied;
  record.overflowed = !end.usable;
  record.t_applied = monotonic_ns();
  record.busy = record.t_applied - record.t_seen;
  note(record);
}

trace::PsRecord AsyncPsServer::record_of(int worker, VersionDomain const& domain) const {
  auto const& push = pushes_[static_cast<std::size_t>(worker)];
  bool const whole = plan_.policy.pulls == ServerPolicy::Pulls::consistent;
  return {.worker = worker,
          .step = push.line.step,
          .first_slot = push.line.first_slot,
          .chunk = whole ? -1 : domain.chunks.front().index,
          .lr = push.line.lr,
          .pulled = push.line.pulls,
          .t_ready = push.t_ready,
          .bytes = bytes_of(domain.chunks)};
}

void AsyncPsServer::release(std::size_t domain) {
  auto& timeline = timelines_[domain];
  for (int const worker : timeline.clock.release()) {
    auto& leaving = timeline.leaving[static_cast<std::size_t>(worker)];
    leaving.clear();  // of the parameters that are replaced now
    stores_[domain].hand_out(worker, timeline.lr);
    leaving = send_parameters(worker, domains_[domain].chunks);
    note_reads(domain, worker);
    if (liveness_.missing(worker)) exclude(domain, worker);
    go_on(worker);
  }
}

void AsyncPsServer::note_reads(std::size_t domain, int worker) {
  if (!plan_.policy.cached_reads) return;
  PullNote const note{.reads = timelines_[domain].clock.cached_reads(worker)};
  of(worker).noted = parts_.world.all().send(to_message(note), rank_of(worker), reads_tag);
}

void AsyncPsServer::go_on(int worker) {
  if (of(worker).is_expected || of(worker).untreated > 0) return;
  bool const everywhere = std::ranges::all_of(
      timelines_, [&](Timeline const& timeline) { return timeline.clock.computing(worker); });
  if (everywhere) expect_line(worker);
}

void AsyncPsServer::exclude_missing() {
  for (int const worker : liveness_.look(std::chrono::nanoseconds(monotonic_ns()))) {
    parts_.recorder.event(trace::Severity::warning, "missing",
                          str("worker ", worker, " on rank ", rank_of(worker),
                              " has not pushed for long; no worker waits for it"));
    for (std::size_t domain = 0; domain < timelines_.size(); ++domain) exclude(domain, worker);
  }
}

void AsyncPsServer::exclude(std::size_t domain, int worker) {
  auto& clock = timelines_[domain].clock;
  if (!clock.computing(worker) || clock.excluded(worker)) return;
  if (clock.exclude(worker)) stores_[domain].apply_collected();
  release(domain);
}

void AsyncPsServer::tell_of_return(int worker) {
  parts_.recorder.event(trace::Severity::info, "back",
                        str("worker ", worker, " on rank ", rank_of(worker), " pushes again"));
}

}  // namespace stratagem
