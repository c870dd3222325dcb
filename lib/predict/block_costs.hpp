#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace stratagem {

/// What one block costs.
struct BlockCost {
  std::string name;
  std::int64_t tensors = 0;     ///< of parameters
  std::int64_t parameters = 0;  ///< elements
  double flops = 0;       ///< of a sample's forward pass; a multiplication and an addition are 2
  std::int64_t kept = 0;  ///< of a sample in fp32, for the backward pass [B]
};

/// Runs passes of a few samples in fp32. FLOPs are those of convolutions, matrix products and
/// attention; everything else is small beside them.
std::vector<BlockCost> block_costs(Model const& model, ModelConfig const& config,
                                   InputShape const& input);

}  // namespace stratagem
