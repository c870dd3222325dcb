#include "strategy/ps/sync_server.hpp"

#include <cmath>

#include "base/clock.hpp"
#include "strategy/control.hpp"

namespace stratagem {
namespace {

PsAnswer sum_of(std::vector<PsLine> const& lines) {
  PsAnswer sums;
  for (auto const& line : lines) {
    sums.loss += line.loss;
    sums.correct += line.correct;
    sums.requests |= line.requests;
  }
  return sums;
}

}  // namespace

void SyncPsServer::drain() {
  while (true) {
    auto const lines = receive_lines();
    if (lines.front().last) break;
    auto sums = sum_of(lines);
    sums.requests |= parts_.requests();
    auto const message = to_message(sums);
    std::vector<Work> sends;
    for (int worker = 0; answers() && worker < workers(); ++worker)
      sends.push_back(parts_.communicator.send(message, rank_of(worker), answer_tag));
    update(lines);
    if (!std::isfinite(sums.loss))
      refuse_loss(parts_.model, parts_.communicator, lines.front().step, -1);
  }
  for (int worker = 0; worker < workers(); ++worker)
    for (auto& work : send_shard(worker, store_.parameters())) work.wait_on_host();
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
  auto const t_ready = monotonic_ns();
  std::int64_t busy = 0;
  std::vector<std::vector<Work>> arriving;
  for (int worker = 0; worker < workers(); ++worker) arriving.push_back(receive_gradients(worker));
  std::vector<Work> leaving;
  std::int64_t t_seen = t_ready;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    for (auto& of_worker : arriving) of_worker[i].wait_on_host();
    t_seen = monotonic_ns();
    store_.apply_sum({own_[i].offset, own_[i].offset + own_[i].range.size()}, lines.front().lr);
    busy += monotonic_ns() - t_seen;
    for (int worker = 0; worker < workers(); ++worker)
      leaving.push_back(send_chunk(worker, store_.parameters(), own_[i]));
  }
  ++version_;
  parts_.recorder.record(trace::PsRecord{.step = lines.front().step,
                                         .base_version = version_ - 1,
                                         .applied_version = version_,
                                         .lr = lines.front().lr,
                                         .queue_depth = workers(),
                                         .t_ready = t_ready,
                                         .t_seen = t_seen,
                                         .t_applied = monotonic_ns(),
                                         .busy = busy,
                                         .bytes = shard_bytes() * workers()});
  for (auto& work : leaving) work.wait_on_host();
}

}  // namespace stratagem
