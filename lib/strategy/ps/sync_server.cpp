#include "strategy/ps/sync_server.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/update.hpp"
#include "strategy/state/replicas.hpp"

namespace stratagem {
namespace {

void wait_all(std::vector<Work>& works) {
  for (auto& work : works) work.wait_on_host();
  works.clear();
}

PullReply sum_of(std::vector<PushHeader> const& lines) {
  PullReply sums;
  for (auto const& line : lines) {
    sums.loss += line.loss;
    sums.correct += line.correct;
    sums.requests |= line.requests;
  }
  return sums;
}

bool are_alike(std::vector<PushHeader> const& lines, CollectiveLog const& own) {
  return std::ranges::all_of(lines, [&](PushHeader const& line) {
    return line.collectives == in_message(own.fingerprint()) &&
           line.replicas == lines.front().replicas;
  });
}

}  // namespace

void SyncPsServer::serve(Round const& round) {
  auto const began = monotonic_ns();
  // The round's first version is what everybody begins with.
  in_use_.assign(static_cast<std::size_t>(plan_.policy.delay) + 1, version_);
  leaving_.resize(own_.size());
  while (true) {
    auto const lines = receive_lines();
    auto const& line = lines.front();
    if (line.last) break;
    auto sums = sum_of(lines);
    sums.requests |= round.requests();
    sums.alike = are_alike(lines, parts_.world.all().collectives());
    if (scale_.needs_norm()) {
      update_as_a_whole(line, sums);
    } else {
      auto const sends = send(sums);
      update_by_chunk(line);
    }
    check(sums, line.step);
  }
  for (auto& works : leaving_) wait_all(works);
  store().publish({0, memory().parameters.numel()}, 0);  // the parameters, not ahead of them
  for (int worker = 0; worker < workers(); ++worker) {
    auto works = send_parameters(worker, own_);
    wait_all(works);
  }
  counts_.whole_ns += monotonic_ns() - began;
}

State SyncPsServer::state() {
  auto state = PsServer::state();
  state.counters.merge(scale_.counters());
  return state;
}

std::vector<PushHeader> SyncPsServer::receive_lines() {
  std::vector<at::Tensor> messages;
  std::vector<Work> works;
  for (int worker = 0; worker < workers(); ++worker) {
    messages.push_back(empty_message());
    works.push_back(parts_.world.all().receive(messages.back(), rank_of(worker), line_tag));
  }
  std::vector<PushHeader> lines;
  for (int worker = 0; worker < workers(); ++worker) {
    works[static_cast<std::size_t>(worker)].wait_on_host();
    lines.push_back(line_from(messages[static_cast<std::size_t>(worker)]));
  }
  return lines;
}

std::vector<Work> SyncPsServer::send(PullReply const& answer) {
  auto const message = to_message(answer);
  std::vector<Work> sends;
  for (int worker = 0; answers() && worker < workers(); ++worker)
    sends.push_back(parts_.world.all().send(message, rank_of(worker), answer_tag));
  return sends;
}

void SyncPsServer::check(PullReply const& answer, std::int64_t step) {
  if (!answer.alike) refuse_difference(parts_.world.all(), {}, step);
  if (!std::isfinite(answer.loss)) refuse_loss(parts_.model, parts_.world.all(), step, -1);
  if (auto const& problem = scale_.problem()) throw AgreedError(*problem);
  std::vector<int> all_workers(static_cast<std::size_t>(workers()));
  std::iota(all_workers.begin(), all_workers.end(), 0);
  check_gradients(step, all_workers);
}

SyncPsServer::Step SyncPsServer::begin(PushHeader const& line) {
  parts_.recorder.enter(trace::Activity::serve, line.step);
  auto const now = monotonic_ns();
  Step step{.record = {.step = line.step,
                       .base_version = in_use_.front(),
                       .lag = version_ - in_use_.front(),
                       .loss_scale = scale_.loss_scale(),
                       .lr = line.lr,
                       .queue_depth = workers(),
                       .t_ready = now,
                       .t_seen = now,
                       .bytes = bytes_of(own_) * workers()}};
  for (int worker = 0; worker < workers(); ++worker)
    step.arriving.push_back(receive_gradients(worker, own_));
  return step;
}

void SyncPsServer::update_by_chunk(PushHeader const& line) {
  auto step = begin(line);
  store().begin_update();
  for (std::size_t chunk = 0; chunk < own_.size(); ++chunk) {
    collect(step, chunk);
    wait_all(leaving_[chunk]);  // the version before
    auto const began = monotonic_ns();
    store().apply_sum(shard_range(own_[chunk]), line.lr, scale_.value());
    step.record.busy += monotonic_ns() - began;
    publish(step, chunk, line.lr);
  }
  end(step);
}

void SyncPsServer::update_as_a_whole(PushHeader const& line, PullReply answer) {
  auto step = begin(line);
  for (std::size_t chunk = 0; chunk < own_.size(); ++chunk) collect(step, chunk);
  answer.norm = norm();
  auto const sends = send(answer);
  bool const sound = answer.alike && std::isfinite(answer.loss);  // else there is no next step
  bool const admitted = sound && scale_.admit(answer.norm);
  step.record.dropped = !admitted;
  step.record.overflowed = sound && !admitted;
  if (admitted) store().begin_update();
  for (std::size_t chunk = 0; chunk < own_.size(); ++chunk) {
    wait_all(leaving_[chunk]);  // the version before
    auto const began = monotonic_ns();
    if (admitted) store().apply_sum(shard_range(own_[chunk]), line.lr, scale_.value());
    step.record.busy += monotonic_ns() - began;
    publish(step, chunk, line.lr);
  }
  end(step);
}

void SyncPsServer::collect(Step& step, std::size_t chunk) {
  for (auto& of_worker : step.arriving) of_worker[chunk].wait_on_host();
  step.record.t_seen = monotonic_ns();
  for (int worker = 0; worker < workers(); ++worker) read_gradient(worker, own_[chunk]);
  store().add_up(shard_range(own_[chunk]));
  step.record.busy += monotonic_ns() - step.record.t_seen;
}

void SyncPsServer::publish(Step& step, std::size_t chunk, double lr) {
  auto const began = monotonic_ns();
  store().publish(shard_range(own_[chunk]), lr);
  step.record.busy += monotonic_ns() - began;
  for (int worker = 0; worker < workers(); ++worker)
    leaving_[chunk].push_back(transport_->send(worker, own_[chunk]));
}

void SyncPsServer::end(Step const& step) {
  auto record = step.record;
  if (!record.dropped) ++version_;
  record.applied_version = version_;
  record.factor = scale_.value();
  record.t_applied = monotonic_ns();
  note(record);
  in_use_.pop_front();
  in_use_.push_back(version_);
}

double SyncPsServer::norm() {
  std::vector<at::Tensor> sums;
  for (auto const& chunk : own_) sums.push_back(in_shard(store().sum(), chunk));
  auto& communicator = parts_.world.all();
  auto const& servers = plan_.placement.server_ranks();
  return gradient_norm(sums, [&](at::Tensor const& sum) {
    if (!answers()) {
      communicator.send(sum, servers.front(), norm_tag).wait_on_host();
      communicator.receive(sum, servers.front(), norm_tag).wait_on_host();
      return;
    }
    auto const others = std::span(servers).subspan(1);
    auto const other = at::empty_like(sum);
    for (int const server : others) {
      communicator.receive(other, server, norm_tag).wait_on_host();
      sum.add_(other);
    }
    for (int const server : others) communicator.send(sum, server, norm_tag).wait_on_host();
  });
}

}  // namespace stratagem
