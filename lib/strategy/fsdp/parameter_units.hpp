#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/work/work.hpp"
#include "strategy/fsdp/coded_gather.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/fsdp/unit_views.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// The parameters of all units: this rank's shards, which last, and the memory into which whole
/// units are gathered to run. All of it is allocated on construction and never moves.
class ParameterUnits {
 public:
  /// The references outlive this object. Initialised from `seed`, each rank its own shards alone.
  ParameterUnits(FsdpPlan const& plan, ParameterLayout const& layout, Communicator& communicator,
                 gpu::Device const& device, std::uint64_t seed, bool poison);

  /// Starts to gather a unit that is neither gathered nor on its way. There must be a free slot.
  void gather(int unit);
  /// The unit's tensors can be used: waits for its gathering.
  void unshard(int unit);
  /// The unit's shards changed, or its slot is needed.
  void reshard(int unit);
  /// Waits for everything that is on its way.
  void wait();
  void reshard_all();

  /// What a block runs with, while its unit and those it borrows from are unsharded.
  std::span<at::Tensor const> of_block(int block) const {
    return by_block_[static_cast<std::size_t>(block)];
  }
  bool is_gathered(int unit) const {
    return units_[static_cast<std::size_t>(unit)].state == State::gathered;
  }
  /// This rank's part of a chunk, in the master type.
  at::Tensor const& shard(int unit, std::size_t chunk) const {
    return units_[static_cast<std::size_t>(unit)].shards[chunk];
  }
  /// What this rank owns, where `shard(unit, chunk)` is laid out as its part of the chunk.
  std::vector<StatePiece> pieces(std::function<at::Tensor(int, std::size_t)> const& shard) const;

 private:
  enum class State { sharded, gathering, gathered };
  struct Gathered {
    UnitViews views;
    std::vector<at::Tensor> shards;  ///< by chunk
    at::Tensor
        memory;  ///< of the whole unit [bytes]; of a unit that rotates: its slot or undefined
    State state = State::sharded;
    std::vector<Work> works;
  };

  void allocate_shards();
  void allocate_slots();
  void initialise_shards(std::uint64_t seed);
  /// Of every parameter of which this rank owns a part: visit(its place in the chunk, what this
  /// rank owns of the chunk, unit, chunk).
  template <class Visit>
  void for_each_own(Visit visit) const;
  void poison(Gathered& unit, int index) const;
  void start_gather(int unit, std::size_t chunk);
  at::Tensor whole_chunk(int unit, std::size_t chunk) const;

  FsdpPlan const& plan_;
  ParameterLayout const& layout_;
  Communicator& communicator_;
  gpu::Device device_;
  bool poison_;
  std::optional<CodedGather> coded_;
  std::vector<Gathered> units_;
  std::vector<std::vector<at::Tensor>> by_block_;
  std::vector<at::Tensor> free_slots_;  ///< bytes
};

}  // namespace stratagem
