#include "gpu/batch_norm.hpp"


namespace stratagem::gpu {

void batch_norm(NormForward const& pass, Device const&) {
  batch_norm_on_host(pass);
}

void batch_norm(NormBackward const& pass, Device const&) {
  batch_norm_on_host(pass);
}

}  // namespace stratagem::gpu
