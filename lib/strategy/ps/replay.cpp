#include "strategy/ps/replay.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/ps/messages.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "trace/schema.hpp"

namespace stratagem {
namespace {

/// Times [ns].
std::vector<std::int64_t> begins_of_rounds(trace::RankTrace const& server) {
  auto const& events = server.table(trace::events_table());
  auto const& names = server.table(trace::names_table()).texts("name");
  std::vector<std::int64_t> begins;
  for (std::size_t i = 0; i < static_cast<std::size_t>(events.rows); ++i)
    if (names.at(static_cast<std::size_t>(events.integers("name_id")[i])) == round_event)
      begins.push_back(events.integers("t_ns")[i]);
  return begins;
}

}  // namespace

std::vector<RecordedPush> recorded_pushes(trace::RankTrace const& server) {
  auto const& table = server.table(trace::ps_table());
  auto const begins = begins_of_rounds(server);
  std::vector<RecordedPush> pushes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(table.rows); ++i)
    pushes.push_back({.worker = static_cast<int>(table.integers("worker")[i]),
                      .round = std::ranges::upper_bound(begins, table.integers("t_seen_ns")[i]) -
                               begins.begin() - 1,
                      .step = table.integers("step")[i],
                      .first_slot = table.integers("first_slot")[i],
                      .base_version = table.integers("base_version")[i],
                      .applied_version = table.integers("applied_version")[i],
                      .scale = {.lr = table.reals("lr")[i],
                                .weight = table.reals("weight")[i],
                                .factor = table.reals("factor")[i]},
                      .loss_scale = table.reals("loss_scale")[i],
                      .dropped = table.integers("dropped")[i] != 0});
  return pushes;
}

PsReplay::PsReplay(PsConfig const& config, StrategyParts const& parts, ServerPlan const& plan,
                   std::vector<std::vector<RecordedPush>> pushes)
    : parts_(parts),
      policy_(policy_of(config, static_cast<int>(plan.roles.workers.size()))),
      pass_(parts, config.micro_batches),
      computed_(plan.roles.workers.size()) {
  if (!policy_.asynchronous())
    throw Error(ExitCode::usage, "a synchronous training has no order of events to repeat",
                "its result follows from the configuration alone", "run it again");
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    auto const shard = parts.allocate(gpu::MemoryCategory::parameters, plan.shards[i]);
    servers_.push_back({.own = plan.chunks_of(static_cast<int>(i)),
                        .store = {policy_, parts.optimizer, workers(), shard},
                        .pushes = std::move(pushes[i]),
                        .workers = std::vector<Server::Worker>(plan.roles.workers.size())});
  }
  for (int worker = 0; worker < workers(); ++worker)
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
}

void PsReplay::load(std::map<std::string, at::Tensor> const& tensors) {
  pass_.replica().load(tensors);
  for (auto& buffers : buffers_) stratagem::load(parts_.model, tensors, buffers);
}

NamedTensors PsReplay::run(BatchOf const& batch_of) {
  auto const& flat = pass_.replica().flat();
  for (auto const& server : servers_)
    for (auto const& chunk : server.own)
      in_shard(server.store.parameters(), chunk).copy_(in_flat(flat, chunk));
  while (begin_round()) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int worker = 0; worker < workers(); ++worker) moved = compute(worker, batch_of) || moved;
      for (auto& server : servers_) moved = apply_next(server) || moved;
    }
  }
  for (auto& server : servers_) {
    if (server.next < server.pushes.size())
      throw Error(ExitCode::bad_data,
                  str("push ", server.next, " of a server waits for what never happened"),
                  "its records, or those of another server, are not whole",
                  "replay a run whose outcome.json says trace_complete");
    server.store.end_round();
    for (auto const& chunk : server.own)
      in_flat(flat, chunk).copy_(in_shard(server.store.parameters(), chunk));
  }
  return pass_.replica().named(flat, all_tensors);
}

bool PsReplay::begin_round() {
  bool any_left = false;
  for (auto& server : servers_) {
    if (server.next < server.round_end) return false;  // the round before has not ended
    any_left = any_left || server.next < server.pushes.size();
  }
  if (!any_left) return false;
  ++round_;
  for (auto& server : servers_) {
    std::ranges::fill(server.workers, Server::Worker{});
    for (; server.round_end < server.pushes.size(); ++server.round_end) {
      auto const& push = server.pushes[server.round_end];
      if (push.round > round_) break;
      server.workers.at(static_cast<std::size_t>(push.worker)).pushes.push_back(server.round_end);
    }
    server.store.begin_round();
    for (auto& worker : server.workers) worker.pulled = 1;
  }
  std::ranges::fill(computed_, 0);
  return true;
}

void PsReplay::hand_out(Server& server) {
  for (int worker = 0; worker < workers(); ++worker) {
    auto& of = server.workers[static_cast<std::size_t>(worker)];
    auto const next = of.pulled * policy_.pull_every;  // the push that begins with the next pull
    if (of.applied < next || next >= static_cast<std::int64_t>(of.pushes.size())) continue;
    auto const& push = server.pushes[of.pushes[static_cast<std::size_t>(next)]];
    if (push.base_version != server.version) continue;
    server.store.hand_out(worker, server.lr);
    ++of.pulled;
  }
}

bool PsReplay::compute(int worker, BatchOf const& batch_of) {
  auto const w = static_cast<std::size_t>(worker);
  auto const number = computed_[w];
  auto const& first = servers_.front();
  if (number == static_cast<std::int64_t>(first.workers[w].pushes.size())) return false;
  for (auto const& server : servers_)
    if (server.workers[w].pulled != number / policy_.pull_every + 1) return false;
  auto const& flat = pass_.replica().flat();
  for (auto const& server : servers_)
    for (auto const& chunk : server.own)
      in_flat(flat, chunk).copy_(in_shard(server.store.handed(worker), chunk));
  auto const& push = first.pushes[first.workers[w].pushes[static_cast<std::size_t>(number)]];
  auto const batch = batch_of(push.step, push.first_slot);
  static_cast<void>(pass_.run(batch, buffers_[w], push.loss_scale));
  for (auto& server : servers_) {
    auto const gradient = at::zeros_like(server.store.parameters());
    for (auto const& chunk : server.own)
      in_shard(gradient, chunk).copy_(in_flat(pass_.gradients(), chunk));
    server.workers[w].arrived.push_back(gradient);
  }
  ++computed_[w];
  return true;
}

bool PsReplay::apply_next(Server& server) {
  if (server.next == server.round_end) return false;
  auto const& push = server.pushes[server.next];
  auto& of = server.workers[static_cast<std::size_t>(push.worker)];
  if (of.arrived.empty()) return false;
  server.store.slot(push.worker).copy_(of.arrived.front());
  of.arrived.pop_front();
  if (!push.dropped) apply(server, push);
  ++of.applied;
  ++server.next;
  hand_out(server);
  return true;
}

void PsReplay::apply(Server& server, RecordedPush const& push) {
  server.lr = push.scale.lr;
  auto const after =
      std::find_if(server.pushes.begin() + static_cast<std::ptrdiff_t>(server.next) + 1,
                   server.pushes.end(), [](auto const& p) { return !p.dropped; });
  bool const completes =
      after == server.pushes.end() || after->applied_version != push.applied_version;
  server.store.take(push.worker, push.scale, completes);
  if (completes) ++server.version;
}

}  // namespace stratagem
