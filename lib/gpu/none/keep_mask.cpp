#include "gpu/keep_mask.hpp"

#include "base/contract.hpp"

namespace stratagem::gpu {

void fill(KeepMask const&, float*, Device const&) {
  expects(false, "a GPU's memory, which this build has none of");
}

}  // namespace stratagem::gpu
