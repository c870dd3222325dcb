#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace stratagem {

/// Memory of a GPU that one rank has for itself, as far as it is known [B].
struct Room {
  /// What a GPU holds beside a run's tensors: CUDA's context with the kernels that are used, 0.3 to
  /// 0.5 GiB (pytorch/pytorch#107667); workspaces of cuBLAS, up to 32 MiB (pytorch/pytorch#120925);
  /// NCCL's buffers, 0.5 to 0.7 GiB for 2 to 4 GPUs with NVLink, less over PCIe (NVIDIA/nccl#964,
  /// #986).
  static constexpr std::int64_t usual_reserve = std::int64_t{1} << 30;

  std::int64_t bytes = 0;  ///< 0: not known
  std::int64_t reserve = usual_reserve;

  bool known() const { return bytes > 0; }
  /// Negative: so much is missing.
  std::int64_t spare(std::int64_t needed) const { return bytes - reserve - needed; }
  bool fits(std::int64_t needed) const { return !known() || spare(needed) >= 0; }
  /// It fits with less than a tenth of the memory to spare: the error of a prediction.
  bool tight(std::int64_t needed) const {
    return known() && fits(needed) && 10 * spare(needed) < bytes;
  }

  /// "fits, 3.2 GiB spare", "tight, 600 MiB spare" or "lacks 1.2 GiB"; "-" where not known.
  std::string verdict(std::int64_t needed) const;
  /// The same in numbers. The memory has to be known.
  nlohmann::json json(std::int64_t needed) const;
};

}  // namespace stratagem
