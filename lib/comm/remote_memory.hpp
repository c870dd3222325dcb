#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"

namespace stratagem {

/// Memory of some ranks of a group that the others write and read. Data go from or to it at once;
/// empty messages only tell that they are there. put() and await_put(), get() and offer() belong
/// together like send and receive, and take their tags: a put its tag, a get its tag and the next.
///
/// Whoever writes must know that nobody reads, and the other way round: a peer puts again when it
/// knows that what it put before was used; the owner writes again when its offer is done.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;

  /// This rank's, 1-D.
  virtual at::Tensor local() const = 0;

  /// source -> the memory of `peer`, from element `offset` on; then tells it.
  virtual Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) = 0;
  /// `peer` has put something here.
  virtual Work await_put(int peer, int tag) = 0;
  /// target <- the memory of `peer`, from element `offset` on, once it offers it; then tells it.
  virtual Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) = 0;
  /// `peer` may get something from here; done when it has.
  virtual Work offer(int peer, int tag) = 0;
};

}  // namespace stratagem
