#pragma once

#include <cstdint>
#include <memory>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Points in time on the compute stream of one rank, recorded without waiting: host ticks on the
/// CPU, events on a GPU, which are read once they have happened.
class Marks {
 public:
  /// Room for `capacity` marks, allocated now.
  Marks(Device const& device, int capacity);
  ~Marks();
  Marks(Marks const&) = delete;
  Marks& operator=(Marks const&) = delete;

  /// The mark's index, counted from the last clear(); -1 when there is no room.
  int add();
  /// Waits until every mark has happened.
  void resolve();
  /// Monotonic time of a resolved mark [ns].
  std::int64_t ns(int mark) const;
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stratagem::gpu
