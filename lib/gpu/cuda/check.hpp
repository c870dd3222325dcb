#pragma once

#include <source_location>

#include <cuda_runtime_api.h>

namespace stratagem::gpu {

/// Throws Error unless `code` is cudaSuccess: out_of_memory if an allocation failed, otherwise
/// environment.
void check(cudaError_t code, char const* call,
           std::source_location where = std::source_location::current());

}  // namespace stratagem::gpu
