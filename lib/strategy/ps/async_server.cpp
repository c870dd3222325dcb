#include "strategy/ps/async_server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.hpp"

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
      inboxes_(static_cast<std::size_t>(workers())) {}

void AsyncPsServer::begin_round(std::int64_t first_step, std::int64_t end_step) {
  round_ = ShareSequence(first_step, end_step, workers());
  next_share_ = round_.dealt_at_first();
}

void AsyncPsServer::drain() {
  clock_.restart();
  for (int worker = 0; worker < workers(); ++worker) {
    store_.hand_out(worker, lr_);  // what the worker has, or, after look-ahead, nearly
    expect_line(worker);
  }
  while (!clock_.all_finished()) {
    bool moved = false;
    for (int worker = 0; worker < workers(); ++worker) moved = attend(worker) || moved;
    if (!moved) std::this_thread::sleep_for(nap);
  }
  for (int worker = 0; worker < workers(); ++worker)
    of(worker).sends = send_shard(worker, store_.parameters());
  for (auto& inbox : inboxes_) inbox.sends.clear();
}

void AsyncPsServer::expect_line(int worker) {
  auto& inbox = of(worker);
  inbox.announced = parts_.communicator.receive(inbox.message, rank_of(worker), line_tag);
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
    clock_.finish(worker);
    release();
    return true;
  }
  inbox.gradients = receive_gradients(worker);
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
  for (auto& work : inbox.gradients) work.wait_on_host();
  auto const t_seen = monotonic_ns();
  int const depth = pushes_under_way();
  lr_ = inbox.line.lr;
  auto const gap = store_.gap(worker);
  auto const verdict = clock_.push(worker);
  if (verdict.applied) store_.apply(worker, verdict.weight, lr_);
  inbox.gradients.clear();
  auto const t_applied = monotonic_ns();
  parts_.recorder.record(trace::PsRecord{.worker = worker,
                                         .step = inbox.line.step,
                                         .first_slot = inbox.line.first_slot,
                                         .base_version = verdict.base_version,
                                         .applied_version = verdict.applied_version,
                                         .lag = verdict.lag,
                                         .gap = gap,
                                         .weight = verdict.weight,
                                         .lr = lr_,
                                         .dropped = !verdict.applied,
                                         .queue_depth = depth,
                                         .t_ready = inbox.t_ready,
                                         .t_seen = t_seen,
                                         .t_applied = t_applied,
                                         .busy = t_applied - t_seen,
                                         .bytes = shard_bytes()});
}

void AsyncPsServer::release() {
  for (int const worker : clock_.release()) {
    auto& inbox = of(worker);
    inbox.sends.clear();  // of the parameters that are replaced now
    store_.hand_out(worker, lr_);
    inbox.sends = send_shard(worker, store_.handed(worker));
    expect_line(worker);
  }
}

int AsyncPsServer::pushes_under_way() const {
  return static_cast<int>(
      std::ranges::count_if(inboxes_, [](Inbox const& inbox) { return !inbox.gradients.empty(); }));
}

}  // namespace stratagem
