#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/protocol/messages.hpp"
#include "strategy/ps/ps_plan.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// How chunks of gradients and parameters get from one rank to another. What a worker pushes a
/// server receives, what a server sends the worker pulls, per chunk in the same order. Where the
/// plan has a code, what is pushed are bytes of it.
class PsTransport {
 public:
  virtual ~PsTransport() = default;

  // On a worker.
  virtual Work push(at::Tensor const& gradient, ServerChunk const& chunk) = 0;
  virtual Work pull(at::Tensor const& parameters, ServerChunk const& chunk) = 0;

  // On a server, whose store has its memory here.
  virtual StoreMemory const& memory() const = 0;
  /// Where the worker's gradient lands in a code.
  virtual at::Tensor code(int worker, ServerChunk const& chunk) const = 0;
  /// Into the worker's slot, or as a code.
  virtual Work receive(int worker, ServerChunk const& chunk) = 0;
  /// From what is outgoing to the worker.
  virtual Work send(int worker, ServerChunk const& chunk) = 0;
};

/// As `config` names it; automatic takes what was faster here for one chunk between the first
/// worker and the first server, and says so in the trace. Collective. AgreedError where it cannot
/// be had.
std::unique_ptr<PsTransport> make_transport(PsPlan const& plan, StrategyParts const& parts);

/// Error(usage) when a policy cannot be carried out by transport rma: a worker may put a gradient
/// only when its last one was used, which it knows from the parameters that came back for it.
void check_transport(PsPlan const& plan);

}  // namespace stratagem
