#pragma once

#include <cstdint>
#include <cstring>

#include <mpi.h>

namespace stratagem::mpi {

/// MPI handles are pointers in Open MPI and integers in MPICH. Both fit into one word, in which 0
/// means "none".
template <class Handle>
std::uintptr_t to_word(Handle handle) {
  static_assert(sizeof(Handle) <= sizeof(std::uintptr_t));
  std::uintptr_t word = 0;
  std::memcpy(&word, &handle, sizeof handle);
  return word;
}

template <class Handle>
Handle from_word(std::uintptr_t word) {
  Handle handle{};
  std::memcpy(&handle, &word, sizeof handle);
  return handle;
}

}  // namespace stratagem::mpi
