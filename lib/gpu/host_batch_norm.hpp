#pragma once

#include "gpu/batch_norm.hpp"

namespace stratagem::gpu {

/// What the kernels do, in their order: they are tested against it.
void batch_norm_on_host(NormForward const& pass);
void batch_norm_on_host(NormBackward const& pass);

}  // namespace stratagem::gpu
