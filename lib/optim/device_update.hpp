#pragma once

#include <span>

#include "gpu/device.hpp"
#include "optim/element_rule.hpp"
#include "params/parameter_layout.hpp"

namespace stratagem {

/// A part of what is updated that has one weight decay.
struct UpdatedPiece {
  FlatRange range;
  bool decays;
};

/// An update of elements in a GPU's memory.
struct DeviceUpdate {
  ElementRule decaying, other;  ///< of pieces that decay, and of the others
  UpdatedMemory memory;
  RoundedCopy rounded;
  float const* refusal;  ///< on the GPU; where it is 1 nothing changes; may be null
};

/// One pass on the compute stream, many pieces with one kernel. The bits of update_on_host().
void update_on_device(DeviceUpdate const& update, std::span<UpdatedPiece const> pieces,
                      gpu::Device const& device);

}  // namespace stratagem
