#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "comm/work/work.hpp"
#include "model/block_tape.hpp"
#include "strategy/fsdp/coded_scatter.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/fsdp/unit_views.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// The ranks that sum gradients: those among which the model is cut and, where there are several
/// such groups, those of all groups that hold the same shards.
struct ShardGroups {
  Communicator& shards;
  Communicator* replicas = nullptr;
};

/// The gradients of all units: this rank's shards of their sums over ranks, which last, and the
/// memory where a unit's own gradients land. All of it is allocated on construction.
class GradientUnits {
 public:
  /// The references outlive this object.
  GradientUnits(FsdpPlan const& plan, ParameterLayout const& layout, StrategyParts const& parts,
                ShardGroups const& groups);

  /// Makes room for the gradients of a pass through the unit; waits for a slot, where slots are
  /// shared. Lenders are opened first of all.
  void open(int unit);
  /// Where the gradients of a block land, while its unit and those it borrows from are open.
  std::span<at::Tensor const> of_block(int block) const {
    return by_block_[static_cast<std::size_t>(block)];
  }
  /// Closes the unit and starts to sum its gradients of this step over ranks; the sum replaces the
  /// shard or is added to it, and is that of the step after the `last` one. What was open last is
  /// finished last. With replicas the sums under way are awaited first, and begin among these.
  void reduce_scatter(int unit, GradWrite write, bool last, std::int64_t step);
  /// Waits until the unit's shard, and that of every unit that was reduced before, holds its sum.
  void finish(int unit);

  /// This rank's part of the sum of a chunk's gradients, in the master type.
  at::Tensor const& shard(int unit, std::size_t chunk) const {
    return units_[static_cast<std::size_t>(unit)].shards[chunk];
  }
  /// All of them.
  std::vector<at::Tensor> shards() const;
  /// What codes have lost, as far as it is kept.
  std::vector<ParameterState> residuals() const;

 private:
  struct Slot {
    at::Tensor memory;   ///< of one unit [bytes]
    at::Tensor scratch;  ///< of a reduced shard of it [bytes]; undefined where not needed
    at::Tensor codes;    ///< that are sent and received [bytes]; likewise
  };
  struct Summed {
    UnitViews views;
    std::vector<at::Tensor> shards;            ///< by chunk
    std::vector<std::vector<FlatRange>> gaps;  ///< by chunk: elements that belong to no parameter
    Slot slot;                                 ///< its own, or undefined while it has none
    std::vector<Work> over_replicas;           ///< by chunk, while these are under way
  };
  struct Reduction {
    int unit;
    GradWrite write;
    bool last;                                  ///< the sum of the step
    std::vector<Work> works;                    ///< by chunk
    std::vector<at::Tensor> summed;             ///< by chunk: where the sum arrives
    std::vector<CodedScatter::Exchange> coded;  ///< by chunk, in place of both
  };

  void allocate();
  Slot take_slot();
  /// A part of the unit's scratch, or the shard itself where the sum can go there at once.
  at::Tensor destination(int unit, std::size_t chunk, GradWrite write) const;
  void finish_oldest();
  void finish_sums(Reduction& reduction);
  /// Begins the sums of a unit's shards over replicas.
  void all_reduce(int unit);

  FsdpPlan const& plan_;
  StrategyParts const& parts_;
  ShardGroups groups_;
  std::optional<CodedScatter> coded_;
  std::vector<Summed> units_;
  std::vector<std::vector<at::Tensor>> by_block_;
  std::vector<Slot> free_slots_;
  std::deque<Reduction> reductions_;  ///< under way, in order
};

}  // namespace stratagem
