#pragma once

#include "model/model.hpp"

namespace stratagem::test {

/// Convolution, batch norm and a residual block of two more, pooled to a linear head.
Model tiny_residual(std::int64_t channels, std::int64_t classes);

/// Convolutions whose results are small maps, to a linear head; of images of 28 pixels.
Model tiny_maps(std::int64_t channels, std::int64_t classes);

/// Sizes that divide by nothing, dropout, and a layer in three parts of unequal height.
Model tiny_odd(std::int64_t channels, std::int64_t classes);

/// A finite loss always, but in step 2 a gradient of `cliff.weight` that is infinite on all workers
/// but the first.
Model tiny_cliff(std::int64_t channels, std::int64_t classes);

}  // namespace stratagem::test
