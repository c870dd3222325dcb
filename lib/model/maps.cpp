#include "model/maps.hpp"

#include <cstdint>

#include "model/landing.hpp"

namespace stratagem {

std::optional<gpu::Maps> maps_of(at::Tensor const& x) {
  auto const type = element_of(x);
  if (!type || x.dim() != 4 || !x.is_contiguous(at::MemoryFormat::ChannelsLast))
    return std::nullopt;
  gpu::Maps const maps{x.size(0) * x.size(2) * x.size(3), x.size(1), *type};
  auto const vector = static_cast<std::uintptr_t>(gpu::ColumnSums::width * x.element_size());
  bool const aligned = reinterpret_cast<std::uintptr_t>(x.data_ptr()) % vector == 0;
  return aligned && gpu::has_kernels(maps) ? std::optional(maps) : std::nullopt;
}

gpu::Device home_of(at::Tensor const& x) {
  return x.is_cuda() ? gpu::Device{gpu::DeviceKind::cuda, x.device().index()} : gpu::Device{};
}

}  // namespace stratagem
