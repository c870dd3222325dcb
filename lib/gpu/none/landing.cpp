#include "gpu/landing.hpp"

#include "base/contract.hpp"

namespace stratagem::gpu {

void land(std::vector<Landing> const&, Device const&) {
  expects(false, "a GPU's memory, which this build has none of");
}

}  // namespace stratagem::gpu
