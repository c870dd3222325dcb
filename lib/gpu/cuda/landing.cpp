#include "gpu/landing.hpp"

#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "gpu/cuda/landing_kernel.hpp"
#include "gpu/device.hpp"

namespace stratagem::gpu {

void land(std::vector<Landing> const& landings, Device const& device) {
  LandingLaunch next{};
  auto const submit = [&] {
    if (next.count > 0) check(launch(next, torch_stream(device)), "land");
    next.count = 0;
  };
  for (auto const& landing : landings) {
    if (landing.count == 0) continue;
    auto const pieces = (landing.count + LandingLaunch::piece - 1) / LandingLaunch::piece;
    next.landings[next.count] = landing;
    ++next.count;
    next.first_block[next.count] =
        next.first_block[next.count - 1] + static_cast<std::int32_t>(pieces);
    if (next.count == LandingLaunch::most) submit();
  }
  submit();
}

}  // namespace stratagem::gpu
