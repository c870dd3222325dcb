#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mpi/comm.hpp"

namespace stratagem::mpi {

/// Memory of each rank of a group that the others write and read without its participation (MPI-3
/// one-sided communication with passive targets; one access epoch to all ranks during the window's
/// life). A rank whose memory is accessed should call MPI often: many implementations move data
/// only then.
class Window {
 public:
  /// `bytes` of this rank, zeroed; may be 0. Collective. Error(environment), the same on all ranks,
  /// if shared memory is too small or the library cannot create the window.
  Window(Comm const& comm, std::size_t bytes);
  /// Collective. While an exception unwinds, the window is not freed before the process ends.
  ~Window();
  Window(Window const&) = delete;
  Window& operator=(Window const&) = delete;

  /// This rank's memory, aligned to a page.
  std::span<std::byte> local() const { return local_; }

  // For memory of `peer` from byte `offset` on; in flight until flush(peer).
  void put(std::span<std::byte const> bytes, int peer, std::size_t offset) const;
  void get(std::span<std::byte> bytes, int peer, std::size_t offset) const;
  /// Afterwards, everything put to `peer` has arrived there, and everything got from it is here.
  void flush(int peer) const;
  /// Afterwards, what peers have put and flushed is visible here, and what was written here can be
  /// got.
  void synchronise() const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::span<std::byte> local_;
  std::vector<std::size_t> begins_;  ///< start of local() in the memory from MPI, by rank
};

}  // namespace stratagem::mpi
