#pragma once

#include <optional>
#include <string_view>

namespace stratagem::gpu {

/// FLOP/s of dense matrix products in bf16 or fp16, as the data sheet of the GPU has them. `name`
/// as its driver tells it; nothing for a device that is not known here.
std::optional<double> peak_flops_of_16_bit(std::string_view name);

}  // namespace stratagem::gpu
