#include "optim/device_update.hpp"

#include "base/contract.hpp"

namespace stratagem {

void update_on_device(DeviceUpdate const&, std::span<UpdatedPiece const>, gpu::Device const&) {
  expects(false, "a GPU's memory, which this build has none of");
}

}  // namespace stratagem
