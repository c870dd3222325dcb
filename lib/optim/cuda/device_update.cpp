#include "optim/device_update.hpp"

#include "base/arithmetic.hpp"
#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "optim/cuda/device_update_kernel.hpp"

namespace stratagem {

void update_on_device(DeviceUpdate const& update, std::span<UpdatedPiece const> pieces,
                      gpu::Device const& device) {
  UpdateLaunch next{.memory = update.memory, .rounded = update.rounded, .refusal = update.refusal};
  auto const submit = [&] {
    if (next.count > 0)
      gpu::check(launch(next, update.decaying, update.other, gpu::torch_stream(device)), "update");
    next.count = next.blocks = 0;
  };
  for (auto const& [range, decays] : pieces) {
    next.pieces[next.count] = {range.begin, range.end, next.blocks, decays};
    ++next.count;
    next.blocks += static_cast<std::int32_t>(ceil_div(range.size(), UpdateLaunch::tile));
    if (next.count == UpdateLaunch::most) submit();
  }
  submit();
}

}  // namespace stratagem
