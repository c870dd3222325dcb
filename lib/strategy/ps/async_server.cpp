#include "strategy/ps/async_server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "strategy/ps/loss_scales.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

constexpr auto nap = 50us;  // an idle server leaves its core to those who compute

bool all_done(std::vector<Work> const& works) {
  return std::ranges::all_of(works, &Work::done);
}

}  // namespace

AsyncPsServer::AsyncPsServer(PsConfig const& config, StrategyParts const& parts)
    : PsServer(config, parts),
      clock_(policy_, workers()),
      attendance_(parts.watchdog, workers()),
      inboxes_(static_cast<std::size_t>(workers())) {}

void AsyncPsServer::begin_round(std::int64_t first_step, std::int64_t end_step) {
  round_ = ShareSequence(first_step, end_step, workers(), policy_.pushes);
  next_share_ = round_.dealt_at_first();
  parts_.recorder.event(trace::Severity::info, round_event, "");
}

void AsyncPsServer::drain() {
  auto const begin = monotonic_ns();
  clock_.restart();
  store_.begin_round();
  for (int worker = 0; worker < workers(); ++worker) expect_line(worker);
  while (!clock_.all_finished()) {
    bool moved = false;
    for (int worker = 0; worker < workers(); ++worker) moved = attend(worker) || moved;
    exclude_missing();
    if (moved) continue;
    trace::Beacon::Wait const sign(&parts_.recorder.beacon(), "gradients");
    std::this_thread::sleep_for(nap);
  }
  for (int worker = 0; worker < workers(); ++worker) {
    of(worker).sends.clear();
    store_.hand_out(worker, 0);
    of(worker).sends = send_parameters(worker);
  }
  for (auto& inbox : inboxes_) inbox.sends.clear();
  counts_.whole_ns += monotonic_ns() - begin;
}

void AsyncPsServer::expect_line(int worker) {
  auto& inbox = of(worker);
  inbox.announced = parts_.communicator.receive(inbox.message, rank_of(worker), line_tag);
  attendance_.expect(worker);
}

bool AsyncPsServer::attend(int worker) {
  auto& inbox = of(worker);
  if (!inbox.gradients.empty()) {
    if (!all_done(inbox.gradients)) return false;
    apply(worker);
    release();
    return true;
  }
  if (!clock_.computing(worker) || !inbox.announced.done()) return false;
  inbox.announced.wait_on_host();
  inbox.line = line_from(inbox.message);
  inbox.t_ready = monotonic_ns();
  if (inbox.line.last) {
    if (attendance_.finished(worker)) tell_of_return(worker);
    if (clock_.finish(worker)) store_.apply_collected();
    release();
    return true;
  }
  if (inbox.line.collectives != in_message(parts_.communicator.collectives().fingerprint()))
    throw mismatch(str("those of the worker on rank ", rank_of(worker),
                       " are not those of its server on rank ", parts_.communicator.rank()));
  inbox.gradients = receive_gradients(worker);
  if (scale_.needs_norm())
    inbox.gradients.push_back(parts_.communicator.receive(inbox.end, rank_of(worker), end_tag));
  if (answers()) answer(worker);
  return true;
}

void AsyncPsServer::answer(int worker) {
  if (of(worker).line.requests.end() || parts_.requests().end()) next_share_ = round_.count();
  PsAnswer answer;
  if (next_share_ < round_.count()) answer.share = next_share_++;
  of(worker).sends.push_back(
      parts_.communicator.send(to_message(answer), rank_of(worker), answer_tag));
}

void AsyncPsServer::apply(int worker) {
  auto& inbox = of(worker);
  parts_.recorder.enter(trace::Activity::serve, inbox.line.step);
  for (auto& work : inbox.gradients) work.wait_on_host();
  auto const t_seen = monotonic_ns();
  if (attendance_.arrived(worker)) tell_of_return(worker);
  auto const end = scale_.needs_norm() ? end_from(inbox.end) : PsEnd{.factor = scale_.value()};
  int const depth = pushes_under_way();
  auto const gap = store_.gap(worker);
  auto const verdict = clock_.push(
      worker,
      {.step = inbox.line.step, .gap = store_.gap_in_updates(worker), .usable = end.usable});
  treat(worker, verdict, end.factor);
  check_gradients(inbox.line.step, {worker});
  inbox.gradients.clear();
  auto const t_applied = monotonic_ns();
  note({.worker = worker,
        .step = inbox.line.step,
        .first_slot = inbox.line.first_slot,
        .base_version = verdict.base_version,
        .applied_version = verdict.applied_version,
        .lag = verdict.lag,
        .gap = gap,
        .weight = verdict.weight,
        .factor = end.factor,
        .loss_scale = end.loss_scale,
        .lr = inbox.line.lr,
        .dropped = !verdict.applied,
        .overflowed = !end.usable,
        .queue_depth = depth,
        .t_ready = inbox.t_ready,
        .t_seen = t_seen,
        .t_applied = t_applied,
        .busy = t_applied - t_seen,
        .bytes = shard_bytes()});
  if (clock_.computing(worker)) expect_line(worker);  // it goes on with what it has
}

void AsyncPsServer::treat(int worker, ServerClock::Verdict const& verdict, double factor) {
  if (!verdict.applied) return;
  lr_ = of(worker).line.lr;
  store_.take(worker, {.lr = lr_, .weight = verdict.weight, .factor = factor}, verdict.completes);
}

void AsyncPsServer::exclude_missing() {
  for (int const worker : attendance_.look(std::chrono::nanoseconds(monotonic_ns()))) {
    parts_.recorder.event(trace::Severity::warning, "missing",
                          str("worker ", worker, " on rank ", rank_of(worker),
                              " has not pushed for long; nobody waits for it"));
    if (clock_.exclude(worker)) store_.apply_collected();
    release();
  }
}

void AsyncPsServer::tell_of_return(int worker) {
  parts_.recorder.event(trace::Severity::info, "back",
                        str("worker ", worker, " on rank ", rank_of(worker), " pushes again"));
}

void AsyncPsServer::release() {
  for (int const worker : clock_.release()) {
    auto& inbox = of(worker);
    inbox.sends.clear();  // of the parameters that are replaced now
    store_.hand_out(worker, lr_);
    inbox.sends = send_parameters(worker);
    expect_line(worker);
  }
}

std::map<std::string, double> AsyncPsServer::counters() const {
  return join_loss_scales(scale_, -1, workers(), parts_.communicator);
}

int AsyncPsServer::pushes_under_way() const {
  return static_cast<int>(
      std::ranges::count_if(inboxes_, [](Inbox const& inbox) { return !inbox.gradients.empty(); }));
}

}  // namespace stratagem
