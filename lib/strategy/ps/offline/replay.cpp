#include "strategy/ps/offline/replay.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/ps/protocol/messages.hpp"
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

/// Those of a server that made its versions.
std::vector<RecordedPush> pushes_of(VersionDomain const& domain,
                                    std::vector<RecordedPush> const& of_server) {
  std::vector<RecordedPush> pushes;
  std::ranges::copy_if(of_server, std::back_inserter(pushes), [&](RecordedPush const& push) {
    return push.chunk < 0 || push.chunk == domain.chunks.front().index;
  });
  return pushes;
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
                      .chunk = table.integers("chunk")[i],
                      .base_version = table.integers("base_version")[i],
                      .applied_version = table.integers("applied_version")[i],
                      .scale = {.lr = table.reals("lr")[i],
                                .weight = table.reals("weight")[i],
                                .factor = table.reals("factor")[i]},
                      .loss_scale = table.reals("loss_scale")[i],
                      .dropped = table.integers("dropped")[i] != 0,
                      .overflowed = table.integers("overflowed")[i] != 0,
                      .pulled = table.integers("pulled")[i] != 0});
  return pushes;
}

PsReplay::PsReplay(PsPlan const& plan, StrategyParts const& parts,
                   std::vector<std::vector<RecordedPush>> pushes)
    : parts_(parts),
      policy_(plan.policy),
      pass_(parts, plan.config.micro_batches),
      code_(make_push_code(plan.config.compression, pass_.replica().layout(), parts.seed)),
      computed_(static_cast<std::size_t>(plan.workers())) {
  if (!policy_.asynchronous())
    throw Error(ExitCode::usage, "a synchronous training has no order of events to repeat",
                "its result follows from the configuration alone", "run it again");
  for (std::size_t i = 0; i < plan.servers.shards.size(); ++i)
    for (auto const& domain : version_domains(policy_, plan.servers, static_cast<int>(i))) {
      auto const shard = parts.allocate(gpu::MemoryCategory::parameters, domain.range.size());
      auto const vectors = vectors_in(domain, pass_.replica().layout());
      servers_.push_back({.chunks = domain.chunks,
                          .store = {policy_, parts.optimizer, workers(), shard, vectors},
                          .own = make_own_updates(policy_, parts.optimizer,
                                                  {shard.numel(), vectors}, shard.options()),
                          .pushes = pushes_of(domain, pushes[i]),
                          .workers = std::vector<Server::Worker>(computed_.size())});
      for (auto& chunk : servers_.back().chunks) chunk.offset -= domain.range.begin;
    }
  for (int worker = 0; worker < workers(); ++worker) {
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
    if (code_) residuals_.push_back(code_->make_residual());
  }
}

void PsReplay::load(TensorMap const& tensors) {
  pass_.replica().load(tensors);
  for (auto& buffers : buffers_) stratagem::load(parts_.model, tensors, buffers);
}

std::int64_t PsReplay::pushes() const {
  std::int64_t all = 0;
  for (auto const& server : servers_) all += static_cast<std::int64_t>(server.pushes.size());
  return all;
}

NamedTensors PsReplay::run(BatchOf const& batch_of) {
  auto const& flat = pass_.replica().flat();
  for (auto const& server : servers_)
    for (auto const& chunk : server.chunks)
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
    for (auto const& chunk : server.chunks)
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
  }
  std::ranges::fill(computed_, 0);
  return true;
}

std::size_t PsReplay::Server::last_of_base(Worker const& of) const {
  auto const pulled = [&](std::size_t place) { return pushes[place].pulled; };
  auto const found = std::find_if(of.pushes.begin() + static_cast<std::ptrdiff_t>(of.base),
                                  of.pushes.end(), pulled);
  return static_cast<std::size_t>(found - of.pushes.begin());
}

void PsReplay::hand_out(Server& server) {
  for (int worker = 0; worker < workers(); ++worker) {
    auto& of = server.workers[static_cast<std::size_t>(worker)];
    auto const next = server.last_of_base(of) + 1;
    if (of.applied < next || next >= of.pushes.size()) continue;
    if (server.pushes[of.pushes[next]].base_version != server.version) continue;
    server.store.hand_out(worker, server.lr);
    of.base = next;
  }
}

bool PsReplay::compute(int worker, BatchOf const& batch_of) {
  auto const w = static_cast<std::size_t>(worker);
  auto const number = computed_[w];
  auto const& first = servers_.front();
  if (number == first.workers[w].pushes.size()) return false;
  for (auto const& server : servers_)
    if (number > server.last_of_base(server.workers[w])) return false;
  auto const& flat = pass_.replica().flat();
  for (auto const& server : servers_)
    for (auto const& chunk : server.chunks)
      in_flat(flat, chunk).copy_(in_shard(server.store.handed(worker), chunk));
  auto const& push = first.pushes[first.workers[w].pushes[number]];
  auto const batch = batch_of(push.step, push.first_slot);
  static_cast<void>(pass_.run(batch, buffers_[w], push.loss_scale));
  if (code_) code_->pass_through(pass_.gradients(), residuals_[w], batch);
  for (auto& server : servers_) {
    auto const gradient = at::zeros_like(server.store.parameters());
    for (auto const& chunk : server.chunks)
      in_shard(gradient, chunk).copy_(in_flat(pass_.gradients(), chunk));
    server.workers[w].arrived.push_back(gradient);
    auto const& own = server.pushes[server.workers[w].pushes[number]];
    if (server.own && !own.pulled && !own.overflowed)
      server.own->apply(server.store.handed(worker), gradient, own.scale);
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
