#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"

namespace stratagem {

/// Memory of some ranks of a group that the others write and read. Data go directly to or from it;
/// empty messages only announce them. put() and await_put(), and get() and offer(), belong together
/// like send and receive, and use tags: a put uses its tag, a get its tag and the next one.
///
/// A writer must know that nobody reads, and the other way round: a peer may put again when it
/// knows that its last put was used; the owner may write again when its offer is done.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;

  /// This rank's memory, 1-D.
  virtual at::Tensor local() const = 0;

  /// source -> memory of `peer`, from element `offset` on; then notifies it.
  virtual Work put(at::Tensor const& source, int peer, std::int64_t offset, int tag) = 0;
  /// Done when `peer` has put something here.
  virtual Work await_put(int peer, int tag) = 0;
  /// target <- memory of `peer`, from element `offset` on, when `peer` offers it; then notifies it.
  virtual Work get(at::Tensor const& target, int peer, std::int64_t offset, int tag) = 0;
  /// Lets `peer` get `bytes` from here; done when it has.
  virtual Work offer(int peer, int tag, std::int64_t bytes) = 0;
};

}  // namespace stratagem
