#pragma once

#include <ATen/core/Tensor.h>

#include "comm/collective_log.hpp"

namespace stratagem {

// Descriptions of a rank's collectives, which must be the same on all ranks of the group.

inline CollectiveCall all_reduce_call(at::Tensor const& tensor) {
  return {CollectiveCall::Kind::all_reduce, tensor.scalar_type(), tensor.numel(),
          tensor.storage_offset()};
}

inline CollectiveCall reduce_scatter_call(at::Tensor const& output, at::Tensor const& input) {
  return {CollectiveCall::Kind::reduce_scatter, input.scalar_type(), output.numel(),
          input.storage_offset()};
}

inline CollectiveCall all_gather_call(at::Tensor const& output, at::Tensor const& input) {
  return {CollectiveCall::Kind::all_gather, input.scalar_type(), input.numel(),
          output.storage_offset()};
}

inline CollectiveCall broadcast_call(at::Tensor const& tensor, int root) {
  return {CollectiveCall::Kind::broadcast, tensor.scalar_type(), tensor.numel(),
          tensor.storage_offset(), root};
}

inline CollectiveCall barrier_call() {
  return {CollectiveCall::Kind::barrier};
}

}  // namespace stratagem
