#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gpu/element.hpp"

namespace stratagem {

/// The tensor's type, if kernels know it.
std::optional<gpu::Element> element_of(at::Tensor const& tensor);

/// to[i] <- from[i], which has the same shape and may have another floating type. On a GPU with few
/// kernels, whatever the types.
void replace(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from);
/// to[i] <- to[i] + from[i], likewise.
void add(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from);

}  // namespace stratagem
