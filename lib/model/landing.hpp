#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace stratagem {

/// to[i] <- from[i], which has the same shape and may have another floating type. On a GPU with few
/// kernels, whatever the types.
void replace(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from);
/// to[i] <- to[i] + from[i], likewise.
void add(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from);

}  // namespace stratagem
