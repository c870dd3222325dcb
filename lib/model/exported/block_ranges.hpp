#pragma once

#include <string>
#include <vector>

#include "model/exported/flow.hpp"

namespace stratagem {

/// Consecutive instructions that become one block.
struct BlockRange {
  int begin, end;
  ValueId input, output;
  std::string name;  ///< of a module that no other block has a part of, else with a number
};

/// Divides the instructions where the graph can be cut, at most into some sixty blocks. Each has
/// parameters that are trained, and begins with a convolution, a linear layer or the like: what
/// only follows these (activations, pooling, batch norms) stays with them.
std::vector<BlockRange> block_ranges(Flow const& flow);

}  // namespace stratagem
