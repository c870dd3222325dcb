#pragma once

#include <cstdint>
#include <vector>

#include "gpu/memory.hpp"
#include "optim/optim_config.hpp"
#include "params/owned_elements.hpp"
#include "params/shard_plan.hpp"
#include "strategy/fsdp/fsdp_config.hpp"
#include "strategy/plan.hpp"

namespace stratagem {

/// Everything that FSDP decides before it runs: what is cut how, what shares memory, what is
/// gathered when, and how many bytes all that takes. A value, the same on all ranks.
///
/// Units [lenders, rotating) are gathered into `parameter_slots` slots in turn; the others have
/// memory of their own and stay in it from forward to backward. Likewise gradients: either every
/// unit has room for its whole gradients, or they pass through `gradient_slots` slots; only those
/// of lenders, which begin with the last block and end with the first, have room of their own.
struct FsdpPlan {
  /// Of the two chunks of a unit: what blocks compute with, and what gradients are summed in.
  struct Types {
    at::ScalarType master = at::kFloat;
    at::ScalarType compute = at::kFloat;       ///< of gathered low-precision chunks
    at::ScalarType low_gradient = at::kFloat;  ///< of their gradients on the wire

    at::ScalarType parameters(Chunk const& chunk) const {
      return chunk.low_precision ? compute : master;
    }
    at::ScalarType gradients(Chunk const& chunk) const {
      return chunk.low_precision ? low_gradient : master;
    }
  };

  ShardPlan shards;
  int replicas = 1;  ///< groups of shards.ranks consecutive ranks, which hold the same shards
  Types types;
  std::int64_t states = 0;  ///< kinds of state that the optimizer keeps
  int lenders = 0;          ///< the first so many units hold what later blocks borrow
  int rotating = 0;
  int prefetch = 0;
  int parameter_slots = 0;
  int gradient_slots = 0;
  bool whole_gradients = false;
  int micro_batches = 1;
  bool overlap = true;                      ///< communicate while blocks compute
  bool poison = false;                      ///< fill memory that is given up with NaN
  Compression compression;                  ///< of gradients on their way into shards
  Code parameter_compression = Code::none;  ///< of gathered low-precision chunks

  int ranks() const { return shards.ranks * replicas; }
  /// The ranks among which the model is cut, and those that hold the same shard as `rank`.
  std::vector<int> shard_group(int rank) const;
  std::vector<int> replica_group(int rank) const;

  int units() const { return static_cast<int>(shards.units.size()); }
  Unit const& unit(int index) const { return shards.units[static_cast<std::size_t>(index)]; }
  bool lends(int index) const { return index < lenders; }
  bool rotates(int index) const { return lenders <= index && index < rotating; }
  int rotating_units() const { return rotating > lenders ? rotating - lenders : 0; }

  /// The rank's shard of the parameters is its part of the unit's own memory, not a copy.
  bool shard_in_place(int unit, Chunk const& chunk) const {
    return !rotates(unit) && types.parameters(chunk) == types.master && !gathers_code(chunk);
  }
  bool gathers_code(Chunk const& chunk) const {
    return parameter_compression != Code::none && chunk.low_precision;
  }
  /// What a rank contributes to the gathering of a chunk.
  std::int64_t gathered_shard_bytes(Chunk const& chunk) const;
  std::int64_t gathered_bytes(int unit) const;  ///< by all ranks
  /// Units that stay where they are when the forward pass turns into the backward pass, and when
  /// that turns into the forward pass of the next micro-batch: nobody else needs their slots.
  bool stays_after_forward(int unit) const {
    return !rotates(unit) || unit >= rotating - parameter_slots;
  }
  bool stays_after_backward(int unit, bool last_micro_batch) const {
    return !last_micro_batch && (!rotates(unit) || unit < lenders + parameter_slots);
  }
  /// A reduced gradient needs room of its own before it reaches the shard: its type differs, or it
  /// is added.
  bool reduces_into_scratch() const;

  /// Bytes of the memory for one gathered unit, and for its gradients.
  std::int64_t parameter_bytes(int unit) const { return bytes(unit, &Types::parameters); }
  std::int64_t gradient_bytes(int unit) const { return bytes(unit, &Types::gradients); }
  std::int64_t parameter_slot_bytes() const;  ///< the largest that rotates
  std::int64_t gradient_slot_bytes() const;
  /// Of a reduced shard, beside the memory for the gradients of `unit` or beside a slot.
  std::int64_t scratch_bytes(int unit) const;
  std::int64_t scratch_slot_bytes() const;

  /// Of the code of one rank's shard of a chunk's gradients; and room for all codes that a unit's
  /// gradients are sent and received in, beside the memory for them or beside a slot.
  std::int64_t shard_code_bytes(Chunk const& chunk) const {
    return wire_bytes(compression.code, chunk.shard / block_elements);
  }
  std::int64_t code_bytes(int unit) const;
  std::int64_t code_slot_bytes() const;

  /// What a rank of a shard group updates: its shards of all chunks.
  OwnedElements owned_by(int rank, ParameterLayout const& layout) const;
  /// Lasting bytes of a rank: all but buffers, activations and workspace.
  gpu::MemoryUse memory() const;
  /// Of each rank and step, without status and clipping.
  std::int64_t gathered_bytes_sent() const;
  std::int64_t reduced_bytes_sent() const;
  std::int64_t replicated_bytes_sent() const;  ///< sums of shards over replicas

  std::uint64_t hash() const;

 private:
  std::int64_t bytes(int unit, at::ScalarType (Types::*type)(Chunk const&) const) const;
};

/// Error(usage) for options that contradict each other or the model, Error(does_not_fit) when
/// `memory_budget` is too small, counting `other_bytes` (buffers) too.
FsdpPlan plan_fsdp(FsdpConfig const& config, ParameterLayout const& layout,
                   OptimizerConfig const& optimizer, Precision precision, int ranks,
                   std::int64_t other_bytes);

StrategyPlan plan_of(FsdpConfig const& config, PlanInput const& input);

}  // namespace stratagem
