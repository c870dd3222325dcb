#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "gpu/device.hpp"
#include "strategy/fsdp/fsdp_plan.hpp"

namespace stratagem {

/// The tensors of a unit's parameters, or of their gradients, by block. They keep their identity,
/// so that what autograd saved of them stays valid, while the memory under them comes and goes.
class UnitViews {
 public:
  enum class Kind { parameters, gradients };

  /// Parameters are leaves of the autograd graph. Nothing is allocated.
  UnitViews(FsdpPlan const& plan, int unit, Kind kind, ParameterLayout const& layout,
            gpu::Device const& device);

  /// `memory`: bytes of the whole unit, 64-byte aligned, one chunk after the other. The tensors do
  /// not own it.
  void point_to(at::Tensor const& memory);
  /// Whoever uses the tensors now is in error and meets a null pointer.
  void point_nowhere();

  /// In the order of the block's declaration.
  std::span<at::Tensor const> block(int block) const {
    return tensors_[static_cast<std::size_t>(block - first_block_)];
  }

 private:
  int first_block_;
  at::Device device_;
  std::vector<c10::Storage> storages_;  ///< by chunk
  std::vector<std::vector<at::Tensor>> tensors_;
};

/// What every block of the model runs with: its own tensors, and then those that it borrows.
std::vector<std::vector<at::Tensor>> tensors_by_block(std::vector<UnitViews const*> const& units,
                                                      FsdpPlan const& plan,
                                                      ParameterLayout const& layout);

/// Of `memory` (bytes) that has room for so many shards of every chunk of a unit, one chunk after
/// the other: the part of one chunk, in its type.
at::Tensor shards_of(at::Tensor const& memory, FsdpPlan const& plan, int unit, std::size_t chunk,
                     UnitViews::Kind kind, int shards);
/// The same for memory of a whole unit.
at::Tensor chunk_of(at::Tensor const& memory, FsdpPlan const& plan, int unit, std::size_t chunk,
                    UnitViews::Kind kind);
/// This rank's shard of a whole chunk.
at::Tensor own_part(at::Tensor const& whole, Chunk const& chunk, int rank);

}  // namespace stratagem
