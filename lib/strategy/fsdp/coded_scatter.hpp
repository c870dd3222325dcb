#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"
#include "compress/codec.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"
#include "strategy/state/state.hpp"
#include "strategy/strategy_parts.hpp"

namespace stratagem {

/// Gradients on their way into shards, in a code: every rank sends each owner the code of its
/// gradients of the owner's shard, and adds up, in rank order, what it reads of its own shard. The
/// sum is not coded.
class CodedScatter {
 public:
  /// Of one chunk.
  struct Exchange {
    std::vector<Work> arriving, sent;
  };

  /// `plan` has a compression. AgreedError(environment) on a GPU.
  CodedScatter(FsdpPlan const& plan, ParameterLayout const& layout, StrategyParts const& parts,
               Communicator& group);

  /// Room for a unit's codes, to be handed to begin() and finish(): [`bytes`].
  at::Tensor make_room(std::int64_t bytes) const;

  /// Codes the gradients `whole` of a chunk, and sends them. With feedback what is lost is kept.
  Exchange begin(int unit, std::size_t chunk, at::Tensor const& whole, at::Tensor const& room,
                 std::int64_t step);
  /// `shard` <- the sum of what all ranks sent of it.
  void finish(Exchange exchange, int unit, std::size_t chunk, at::Tensor const& room,
              at::Tensor const& shard);

  std::vector<ParameterState> state() const;

 private:
  /// Consecutive elements of a chunk that are of one parameter, in whole blocks.
  struct Part {
    FlatRange range;           ///< of the chunk
    std::int64_t first = 0;    ///< of them, in the flat space
    std::int64_t padding = 0;  ///< the last so many belong to no parameter
  };

  int rank() const { return group_.rank(); }
  int ranks() const { return plan_.shards.ranks; }
  Chunk const& chunk_of(int unit, std::size_t chunk) const {
    return plan_.unit(unit).chunks[chunk];
  }
  /// Of the shard of `owner`.
  std::vector<Part> parts_of(Chunk const& chunk, int owner) const;
  /// Where the code of a shard that goes to `peer` lies, or of one that comes from it.
  at::Tensor sending(at::Tensor const& room, int unit, std::size_t chunk, int peer) const;
  at::Tensor receiving(at::Tensor const& room, int unit, std::size_t chunk, int peer) const;
  /// Of that code, what is of a part.
  std::span<std::byte> code(at::Tensor const& of_shard, Part const& part, int owner,
                            Chunk const& chunk) const;
  void encode(Chunk const& chunk, int owner, at::Tensor const& whole, at::Tensor const& of_shard,
              std::int64_t step);

  FsdpPlan const& plan_;
  ParameterLayout const& layout_;
  Communicator& group_;
  Codec codec_;
  at::Tensor
      residual_;  ///< of this rank's gradients, in the flat space; undefined without feedback
};

}  // namespace stratagem
