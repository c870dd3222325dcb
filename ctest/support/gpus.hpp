#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "comm/process_info.hpp"
#include "support/world.hpp"

namespace stratagem::test {

/// This rank's GPU; none where there is none.
inline std::optional<gpu::Device> own_gpu() {
  auto const process = discover_process(world());
  if (process.device.kind == gpu::DeviceKind::cpu) return std::nullopt;
  gpu::select(process.device);
  return process.device;
}

/// Why NCCL cannot join these ranks.
inline std::optional<std::string> what_nccl_lacks() {
  auto const* shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (!discover_process(world()).shares_device || (shares != nullptr && *shares == '1'))
    return std::nullopt;
  return "needs a GPU for each rank, or NCCL >= 2.30 and NCCL_MULTI_RANK_GPU_ENABLE=1";
}

}  // namespace stratagem::test
