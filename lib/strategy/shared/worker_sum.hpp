#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"

namespace stratagem {

/// own.front() <- ((t_0 + t_1) + t_2) + ... over the tensors of all workers, of which rank r plays
/// those from r w on, w = own.size(). The result does not depend on the number of ranks. The other
/// tensors stay as they are. Tensors are 1-D and equally large. Returns before the sum is there
/// where a rank plays one worker, else when it is; until the wait own.front() belongs to it.
/// Collective.
Work begin_sum_over_workers(std::span<at::Tensor const> own, Communicator& communicator);

/// Sent by each rank for tensors of so many bytes, on average [B].
std::int64_t worker_sum_bytes(std::int64_t bytes, int workers_of_rank, int ranks);

}  // namespace stratagem
