#include "strategy/ps/server.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "params/initialise.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
PsServer::PsServer(PsPlan plan, StrategyParts const& parts)
    : plan_(std::move(plan)),
      parts_(parts),
      layout_(make_layout(parts.model)),
      server_(plan_.placement.seat_of(parts.world.all().rank()).server),
      own_(plan_.servers.chunks_of(server_)),
      transport_(make_transport(plan_, parts)),
      domains_(version_domains(plan_.policy, plan_.servers, server_)),
      scale_(make_gradient_scale(plan_, parts.optimizer, parts.precision)),
      code_(make_push_code(plan_.config.compression, layout_, parts.seed)) {
  for (auto const& domain : domains_)
    stores_.emplace_back(plan_.policy, parts.optimizer, memory().part(domain.range),
                         vectors_in(domain, layout_));
  initialise_shard();
}

void PsServer::initialise_shard() {
  for (auto const& entry : layout_.entries()) {
    FlatRange const whole{entry.offset, entry.offset + entry.spec.numel()};
    auto const is_in = [&](ServerChunk const& chunk) {
      return overlap(whole, chunk.range).size() > 0;
    };
    if (!std::ranges::any_of(own_, is_in)) continue;
    auto const values =
        at::empty_strided(entry.spec.shape, entry.strides, memory().parameters.options());
    initialise(values, entry.spec, parts_.seed);
    for (auto const& chunk : own_)
      copy_overlap(values, entry, entry.offset, chunk.range, in_shard(memory().parameters, chunk));
  }
}

State PsServer::state() {
  auto const type = memory().parameters.scalar_type();
  State state{.of_parameters = {{State::parameters, type, {}}}};
  for (auto const& kind : kept_kinds(plan_.policy, parts_.optimizer))
    state.of_parameters.push_back({kind, type, {}});
  for (auto const& chunk : own_)
    std::ranges::move(pieces_of(layout_, chunk.range, in_shard(memory().parameters, chunk)),
                      std::back_inserter(state.of_parameters.front().pieces));
  for (std::size_t domain = 0; domain < domains_.size(); ++domain) add_kept(domain, state);
  if (plan_.config.compression.error_feedback)
    std::ranges::move(of_each_worker(Compression::residual, layout_, {}, workers(), -1),
                      std::back_inserter(state.of_parameters));
  state.counters = stores_.front().counters();  // state_replaced() gives them to the others
  return state;
}

void PsServer::state_replaced() {
  for (auto& store : stores_)
    for (auto const& [name, value] : store.counters())
      *value = *stores_.front().counters().at(name);
}

void PsServer::add_kept(std::size_t domain, State& state) const {
  auto const kept = stores_[domain].kept();
  auto const begin = domains_[domain].range.begin;
  for (std::size_t kind = 0; kind < kept.size(); ++kind)
    for (auto const& chunk : domains_[domain].chunks) {
      auto const& terms = kept[kind].terms;
      auto pieces = pieces_of(layout_, chunk.range, in_part(terms.front(), begin, chunk));
      for (std::size_t i = 1; i < terms.size(); ++i) {
        auto const others = pieces_of(layout_, chunk.range, in_part(terms[i], begin, chunk));
        for (std::size_t piece = 0; piece < pieces.size(); ++piece)
          pieces[piece].terms.push_back(others[piece].terms.front());
      }
      std::ranges::move(pieces, std::back_inserter(state.of_parameters[kind + 1].pieces));
    }
}

std::vector<Work> PsServer::receive_gradients(int worker, std::vector<ServerChunk> const& chunks) {
  std::vector<Work> works;
  for (auto const& chunk : chunks) works.push_back(transport_->receive(worker, chunk));
  return works;
}

void PsServer::read_gradient(int worker, ServerChunk const& chunk) {
  if (code_)
    code_->decode(transport_->code(worker, chunk), chunk.range,
                  in_shard(memory().slot(worker), chunk));
}

std::vector<Work> PsServer::send_parameters(int worker, std::vector<ServerChunk> const& chunks) {
  std::vector<Work> works;
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk)
    works.push_back(transport_->send(worker, *chunk));
  return works;
}

void PsServer::check_gradients(std::int64_t step, std::vector<int> const& workers) const {
  if (std::ranges::all_of(stores_, &ParameterStore::finite)) return;
  // The last of them goes first: the slot of worker 0 holds a sum where there is one.
  auto guilty = workers.back();
  for (auto worker = workers.rbegin(); worker != workers.rend(); ++worker) {
    guilty = *worker;
    if (!memory().slot(guilty).isfinite().all().item<bool>()) break;
  }
  NamedTensors pieces;
  for (auto const& chunk : own_)
    for (auto const& entry : layout_.entries()) {
      auto const part = overlap({entry.offset, entry.offset + entry.spec.numel()}, chunk.range);
      if (part.size() <= 0) continue;
      pieces.emplace_back(label_of(entry.spec),
                          in_shard(memory().slot(guilty), chunk)
                              .narrow(0, part.begin - chunk.range.begin, part.size()));
    }
  throw bad_gradient(step, str("of the worker on rank ", rank_of(guilty)), pieces);
}

std::int64_t PsServer::bytes_of(std::vector<ServerChunk> const& chunks) const {
  std::int64_t elements = 0;
  for (auto const& chunk : chunks) elements += chunk.range.size();
  if (code_) return code_->bytes(elements);
  return elements * static_cast<std::int64_t>(memory().parameters.element_size());
}

std::string PsServer::report() {
  auto const text = describe(counts_.joined(parts_.world.all()), plan_.policy);
  counts_ = {};
  return parts_.world.all().rank() == 0 ? text : "";
}

void PsServer::note(trace::PsRecord const& record) {
  parts_.recorder.record(record);
  counts_.lags.add(record.lag);
  counts_.dropped += record.dropped ? 1 : 0;
  counts_.overflowed += record.overflowed ? 1 : 0;
  counts_.busy_ns += record.busy;
  if (!record.dropped || record.overflowed) return;
  bool const by_chunk = record.chunk >= 0;
  auto const parts = by_chunk ? plan_.servers.chunks.size() : plan_.servers.shards.size();
  discarded_ += 1 / static_cast<double>(parts);
}

}  // namespace stratagem
