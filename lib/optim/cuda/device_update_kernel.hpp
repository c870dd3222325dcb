#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "optim/element_rule.hpp"

namespace stratagem {

/// An update of as many pieces as a kernel's parameters hold (4 KiB), each cut into tiles, one
/// per thread block.
struct UpdateLaunch {
  static constexpr int most = 150;
  static constexpr std::int64_t tile = 1 << 12;  ///< elements

  struct Piece {
    std::int64_t begin, end;
    std::int32_t first_block;
    bool decays;
  };

  UpdatedMemory memory;
  RoundedCopy rounded;
  float const* refusal;  ///< may be null
  Piece pieces[most];
  int count;
  std::int32_t blocks;  ///< of all
};

/// `decaying`, `other`: of pieces that decay, and of the others.
cudaError_t launch(UpdateLaunch const& launch, ElementRule const& decaying,
                   ElementRule const& other, cudaStream_t stream);

}  // namespace stratagem
