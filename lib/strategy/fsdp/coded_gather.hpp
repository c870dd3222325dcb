#pragma once

#include <ATen/core/Tensor.h>

#include "compress/codec.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"

namespace stratagem {

/// Parameters that are gathered in a code: all ranks, the owner of a shard too, compute with what
/// they read of it (Markov et al., "QSDP", arXiv 2302.02390). Every element is rounded to the
/// nearest, so that a unit has the same values whenever it is gathered.
///
/// Until they are read, the codes of a chunk lie in the memory into which it is gathered, at its
/// end: there they need no room of their own.
class CodedGather {
 public:
  /// `plan` has a code for parameters. AgreedError(environment) on a GPU.
  CodedGather(FsdpPlan const& plan, gpu::Device const& device);

  /// The codes of all ranks' shards, in rank order [bytes], within the memory of a whole chunk.
  at::Tensor codes_in(Chunk const& chunk, at::Tensor const& whole) const;
  /// `code` <- of this rank's shard, in fp32.
  void write(at::Tensor const& shard, at::Tensor const& code) const;
  /// `whole` <- what is read of the codes in it, in its type.
  void read(Chunk const& chunk, at::Tensor const& whole) const;

 private:
  FsdpPlan const& plan_;
  Codec codec_;
};

}  // namespace stratagem
