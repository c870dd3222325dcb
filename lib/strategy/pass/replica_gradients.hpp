#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "strategy/pass/block_store.hpp"
#include "strategy/pass/replica.hpp"

namespace stratagem {

/// The store of a whole replica: its parameters are always there, and gradients go into memory of
/// their own that is laid out as they are.
class ReplicaGradients final : public BlockStore {
 public:
  /// `flat`: [elements of the layout]. The replica outlives it.
  ReplicaGradients(Replica const& replica, at::Tensor flat);

  at::Tensor const& flat() const { return flat_; }
  /// What the next pass does with gradients that are there.
  void write(GradWrite write) { write_ = write; }

  std::span<at::Tensor const> unshard(int block, Direction /*direction*/) override {
    return replica_.parameters(block);
  }
  GradientTarget gradients(int block) override {
    return {views_[static_cast<std::size_t>(block)], write_};
  }

 private:
  Replica const& replica_;
  at::Tensor flat_;
  std::vector<std::vector<at::Tensor>> views_;  ///< by block
  GradWrite write_ = GradWrite::overwrite;
};

}  // namespace stratagem
