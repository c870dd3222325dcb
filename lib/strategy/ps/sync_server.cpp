#include "strategy/ps/sync_server.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.hpp"
#include "strategy/control.hpp"
#include "strategy/replicas.hpp"

namespace stratagem {
namespace {

void wait_all(std::vector<Work>& works) {
  for (auto& work : works) work.wait_on_host();
  works.clear();
}

PsAnswer sum_of(std::vector<PsLine> const& lines) {
  PsAnswer sums;
  for (auto const& line : lines) {
    sums.loss += line.loss;
    sums.correct += line.correct;
    sums.requests |= line.requests;
  }
  return sums;
}

bool are_alike(std::vector<PsLine> const& lines, CollectiveLog const& own) {
  return std::ranges::all_of(lines, [&](PsLine const& line) {
    return line.collectives == in_message(own.fingerprint()) &&
           line.replicas == lines.front().replicas;
  });
}

}  // namespace

void SyncPsServer::drain() {
  auto const begin = monotonic_ns();
  round_begin_ = version_;
  leaving_.resize(own_.size());
  std::vector<int> all_workers(static_cast<std::size_t>(workers()));
  std::iota(all_workers.begin(), all_workers.end(), 0);
  while (true) {
    auto const lines = receive_lines();
    if (lines.front().last) break;
    auto sums = sum_of(lines);
    sums.requests |= parts_.requests();
    sums.alike = are_alike(lines, parts_.communicator.collectives());
    auto const message = to_message(sums);
    std::vector<Work> sends;
    for (int worker = 0; answers() && worker < workers(); ++worker)
      sends.push_back(parts_.communicator.send(message, rank_of(worker), answer_tag));
    update(lines);
    if (!sums.alike) refuse_difference(parts_.communicator, {}, lines.front().step);
    if (!std::isfinite(sums.loss))
      refuse_loss(parts_.model, parts_.communicator, lines.front().step, -1);
    check_gradients(lines.front().step, all_workers);
  }
  for (auto& works : leaving_) wait_all(works);
  store_.publish({0, store_.parameters().numel()}, 0);  // the parameters, not ahead of them
  for (int worker = 0; worker < workers(); ++worker) {
    auto works = send_parameters(worker);
    wait_all(works);
  }
  counts_.whole_ns += monotonic_ns() - begin;
}

std::vector<PsLine> SyncPsServer::receive_lines() {
  std::vector<at::Tensor> messages;
  std::vector<Work> works;
  for (int worker = 0; worker < workers(); ++worker) {
    messages.push_back(empty_message());
    works.push_back(parts_.communicator.receive(messages.back(), rank_of(worker), line_tag));
  }
  std::vector<PsLine> lines;
  for (int worker = 0; worker < workers(); ++worker) {
    works[static_cast<std::size_t>(worker)].wait_on_host();
    lines.push_back(line_from(messages[static_cast<std::size_t>(worker)]));
  }
  return lines;
}

void SyncPsServer::update(std::vector<PsLine> const& lines) {
  parts_.recorder.enter(trace::Activity::serve, lines.front().step);
  auto const t_ready = monotonic_ns();
  auto const lr = lines.front().lr;
  std::int64_t busy = 0;
  std::vector<std::vector<Work>> arriving;
  for (int worker = 0; worker < workers(); ++worker) arriving.push_back(receive_gradients(worker));
  std::int64_t t_seen = t_ready;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    for (auto& of_worker : arriving) of_worker[i].wait_on_host();
    wait_all(leaving_[i]);  // the version before
    t_seen = monotonic_ns();
    FlatRange const range{own_[i].offset, own_[i].offset + own_[i].range.size()};
    store_.apply_sum(range, lr);
    store_.publish(range, lr);
    busy += monotonic_ns() - t_seen;
    for (int worker = 0; worker < workers(); ++worker)
      leaving_[i].push_back(transport_->send(worker, own_[i]));
  }
  record(lines.front(), t_ready, t_seen, busy);
}

void SyncPsServer::record(PsLine const& line, std::int64_t t_ready, std::int64_t t_seen,
                          std::int64_t busy) {
  // The round's first version is what everybody begins with.
  auto const base = std::max(version_ - policy_.delay, round_begin_);
  note({.step = line.step,
        .base_version = base,
        .applied_version = version_ + 1,
        .lag = version_ - base,
        .lr = line.lr,
        .queue_depth = workers(),
        .t_ready = t_ready,
        .t_seen = t_seen,
        .t_applied = monotonic_ns(),
        .busy = busy,
        .bytes = shard_bytes() * workers()});
  ++version_;
}

}  // namespace stratagem
