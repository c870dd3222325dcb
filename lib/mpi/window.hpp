#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mpi/comm.hpp"

namespace stratagem::mpi {

/// Memory of each rank of a group that the others write and read without its doing (MPI-3 one-sided
/// communication with passive targets; one epoch of access to all for the window's life). A rank
/// whose memory is accessed should call MPI often: many implementations move data only then.
class Window {
 public:
  /// `bytes` on this rank, zeroed, which may be none. Collective. Error(environment), on all ranks
  /// alike, when shared memory is too small for it or the library cannot make it.
  Window(Comm const& comm, std::size_t bytes);
  /// Collective, but while an exception unwinds the window is left to the end of the process.
  ~Window();
  Window(Window const&) = delete;
  Window& operator=(Window const&) = delete;

  /// This rank's memory, on a page's bound.
  std::span<std::byte> local() const { return local_; }

  // Of memory of `peer` from byte `offset` on; under way until flush(peer).
  void put(std::span<std::byte const> bytes, int peer, std::size_t offset) const;
  void get(std::span<std::byte> bytes, int peer, std::size_t offset) const;
  /// What was put to `peer` is there, and what was got from it is here.
  void flush(int peer) const;
  /// What peers have put and flushed is visible here, and what was written here can be got.
  void synchronise() const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::span<std::byte> local_;
  std::vector<std::size_t> begins_;  ///< of local() in the memory MPI gave, by rank
};

}  // namespace stratagem::mpi
