#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/random.hpp"
#include "compress/compression.hpp"
#include "optim/optim_config.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// What a sparse code takes of one tensor.
struct SparseTensor {
  std::size_t entry = 0;   ///< of the layout
  FlatRange range;         ///< its elements in the flat space
  std::int64_t count = 0;  ///< elements that are taken
  FlatRange wire;          ///< their bytes in the message
};

/// What it takes of the tensors in a range of the flat space.
struct SparseMessage {
  FlatRange range;
  std::vector<SparseTensor> tensors;
  std::int64_t count = 0;  ///< elements that are taken
  std::int64_t bytes = 0;
};

SparseMessage sparse_message(Compression const& compression, ParameterLayout const& layout,
                             FlatRange range);

/// What a worker has not sent yet: [parameters] each, undefined where the code keeps none.
struct SparseMemory {
  SparseMemory(Compression const& compression, ParameterLayout const& layout);

  at::Tensor residual;
  at::Tensor velocity;  ///< of momentum correction
};

/// States that each worker has of its own: kinds of Compression, and what is held of them.
std::vector<std::pair<std::string_view, at::Tensor>> kinds_of(SparseMemory const& memory);

/// Takes a few elements of each tensor: the largest, which travel with their places (Aji and
/// Heafield, EMNLP 2017, arXiv 1704.05021), or random ones, which are the same on all workers, so
/// that only numbers travel and sums are made on the way (Stich et al., NeurIPS 2018, arXiv
/// 1809.07599). What is not taken stays for the next step, or, without feedback, is lost; random
/// elements are then multiplied by numel / count, so that the mean is right.
///
/// Momentum correction (Lin et al., ICLR 2018, arXiv 1712.01887): with a worker's gradient g,
/// u <- momentum u + g and v <- v + u, of which elements are taken; there u and v become 0.
class SparseGradients {
 public:
  SparseGradients(Compression const& compression, OptimizerConfig const& optimizer,
                  std::uint64_t seed);

  /// wire <- what is taken of a worker's `gradients` [parameters] and of its memory.
  void encode(SparseMessage const& message, std::span<float const> gradients,
              SparseMemory const& memory, std::int64_t step, std::span<std::byte> wire);
  /// sums [parameters] <- sums + what `wire` says. AgreedError(mismatch) for what is no code.
  void add(SparseMessage const& message, std::span<std::byte const> wire, std::int64_t step,
           std::span<float> sums);

 private:
  /// What the elements are taken of: the tensor's gradients, with what is left of others.
  std::span<float const> wanted(SparseTensor const& tensor, std::span<float const> gradients,
                                SparseMemory const& memory) const;
  void draw(SparseTensor const& tensor, std::int64_t step);
  float scale_of(SparseTensor const& tensor) const;

  Compression compression_;
  float momentum_ = 0;
  CounterRandom random_;
  std::vector<std::uint32_t> places_;  ///< of the present tensor
};

}  // namespace stratagem
