#include "model/fused/maps.hpp"

#include <cstdint>

#include "model/landing.hpp"

namespace stratagem {
namespace {

/// Of memory that holds nothing else between the first and the last element.
std::optional<gpu::Maps> if_suits(at::Tensor const& x, std::int64_t channels) {
  auto const type = element_of(x);
  if (!type || channels == 0) return std::nullopt;
  gpu::Maps const maps{x.numel() / channels, channels, *type};
  auto const vector = static_cast<std::uintptr_t>(gpu::ColumnSums::width * x.element_size());
  bool const aligned = reinterpret_cast<std::uintptr_t>(x.data_ptr()) % vector == 0;
  return aligned && gpu::has_kernels(maps) ? std::optional(maps) : std::nullopt;
}

}  // namespace

std::optional<gpu::Maps> maps_of(at::Tensor const& x) {
  if (x.dim() != 4 || !x.is_contiguous(at::MemoryFormat::ChannelsLast)) return std::nullopt;
  return if_suits(x, x.size(1));
}

std::optional<gpu::Maps> rows_of(at::Tensor const& x) {
  if (x.dim() == 0 || !x.is_contiguous()) return std::nullopt;
  return if_suits(x, x.size(-1));
}

std::optional<std::int64_t> row_stride_of(at::Tensor const& x) {
  auto const stride = x.stride(3);
  bool const equally = x.stride(1) == 1 && x.stride(2) == x.size(3) * stride &&
                       x.stride(0) == x.size(2) * x.stride(2);
  return equally ? std::optional(stride) : std::nullopt;
}

}  // namespace stratagem
