#include "strategy/ps/server.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "params/initialise.hpp"
#include "strategy/control.hpp"
#include "strategy/model_layout.hpp"
#include "strategy/ps/ps_plan.hpp"

namespace stratagem {
PsServer::PsServer(PsConfig const& config, StrategyParts const& parts)
    : parts_(parts),
      layout_(make_layout(parts.model)),
      plan_(plan_servers(config, layout_, parts.communicator.size(),
                         size_of(master_type(parts.precision.compute)))),
      policy_(policy_of(config, workers())),
      server_(plan_.roles.server_of(parts.communicator.rank())),
      own_(plan_.chunks_of(server_)),
      transport_(make_transport(config, plan_, parts)),
      domains_(version_domains(policy_, plan_, server_)),
      scale_(make_gradient_scale(config, parts.optimizer, parts.precision, workers())),
      buffers_(make_buffers(parts.model, parts.device, parts.precision.compute)) {
  for (auto const& domain : domains_)
    stores_.emplace_back(policy_, parts.optimizer, memory().part(domain.range));
  for (auto const& entry : layout_.entries()) {
    if (!owns_part_of(entry)) continue;
    auto const values =
        at::empty_strided(entry.spec.shape, entry.strides, memory().parameters.options());
    initialise(values, entry.spec, parts.seed);
    place(entry, values, own_, memory().parameters);
  }
}

bool PsServer::owns_part_of(ParameterEntry const& entry) const {
  return std::ranges::any_of(own_, [&](ServerChunk const& chunk) {
    return overlap({entry.offset, entry.offset + entry.spec.numel()}, chunk.range).size() > 0;
  });
}

void PsServer::place(ParameterEntry const& entry, at::Tensor const& values,
                     std::vector<ServerChunk> const& chunks, at::Tensor const& part,
                     std::int64_t begin) {
  for (auto const& chunk : chunks)
    copy_overlap(values, entry, entry.offset, chunk.range, in_part(part, begin, chunk));
}

void PsServer::load(std::map<std::string, at::Tensor> const& tensors) {
  for (auto const& entry : layout_.entries())
    if (auto const given = find(tensors, entry.spec); given.defined())
      place(entry, given, own_, memory().parameters);
}

void PsServer::load_momentum(std::map<std::string, at::Tensor> const& tensors) {
  // What is known is the sum over workers: where each has a momentum of its own, equal parts of it.
  auto const share = 1.0 / static_cast<double>(stores_.front().momenta().size());
  for (auto const& entry : layout_.entries()) {
    auto const given = find(tensors, entry.spec);
    if (!given.defined()) continue;
    auto const part = share < 1 ? given * share : given;
    for (std::size_t i = 0; i < domains_.size(); ++i)
      for (auto const& momentum : stores_[i].momenta())
        place(entry, part, domains_[i].chunks, momentum, domains_[i].range.begin);
  }
}

std::vector<Work> PsServer::receive_gradients(int worker, std::vector<ServerChunk> const& chunks) {
  std::vector<Work> works;
  for (auto const& chunk : chunks) works.push_back(transport_->receive(worker, chunk));
  return works;
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
  return elements * static_cast<std::int64_t>(memory().parameters.element_size());
}

StepResult PsServer::step(Batch const&, StepOptions const&) {
  expects(false, "a server is handed no batch");
  return {};
}

void PsServer::prepare_evaluation() {
  static_cast<void>(average(buffers_, parts_.communicator, plan_.roles.workers));
}

at::Tensor PsServer::predict(at::Tensor const&) {
  expects(false, "a server has no model to predict with");
  return {};
}

std::string PsServer::report() {
  auto const text = describe(counts_.joined(parts_.communicator), policy_);
  counts_ = {};
  return parts_.communicator.rank() == 0 ? text : "";
}

void PsServer::note(trace::PsRecord const& record) {
  parts_.recorder.record(record);
  counts_.lags.add(record.lag);
  counts_.dropped += record.dropped ? 1 : 0;
  counts_.overflowed += record.overflowed ? 1 : 0;
  counts_.busy_ns += record.busy;
}

NamedTensors PsServer::gather_momentum(Wanted const&) {
  std::vector<Work> works;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    auto const momentum = stores_[i].momentum();
    if (!momentum.defined()) return {};
    for (auto const& chunk : domains_[i].chunks)
      works.push_back(parts_.communicator.send(in_part(momentum, domains_[i].range.begin, chunk),
                                               rank_of(0), chunk_tag(chunk.index)));
  }
  for (auto& work : works) work.wait_on_host();
  return {};
}

NamedTensors PsServer::gather_buffers() {
  return named(parts_.model, average(buffers_, parts_.communicator, plan_.roles.workers));
}

}  // namespace stratagem
