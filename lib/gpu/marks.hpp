#pragma once

#include <cstdint>
#include <memory>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Points in time on the compute stream of one rank, recorded without waiting: host times on the
/// CPU, events on a GPU, which are read after they have happened.
class Marks {
 public:
  /// Room for `capacity` marks, allocated now.
  Marks(Device const& device, int capacity);
  ~Marks();
  Marks(Marks const&) = delete;
  Marks& operator=(Marks const&) = delete;

  /// Index of the mark, counted from the last clear(); -1 if there is no room.
  int add();
  /// Like add() for a mark that a graph makes, see Graph::launch.
  int expect();
  /// Only the first `count` marks were made.
  void keep_first(int count);
  /// Names a mark to a graph; null on the CPU.
  void* handle(int mark) const;
  /// Waits until every mark has happened. On a GPU, the time of the first mark is when it was
  /// submitted, or `not_before` [ns] if that is later, because a host that runs ahead submits
  /// early.
  void resolve(std::int64_t not_before = 0);
  /// Monotonic time of a resolved mark [ns].
  std::int64_t ns(int mark) const;
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stratagem::gpu
