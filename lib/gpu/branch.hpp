#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Work beside that of the compute stream, in a graph that is being made of it. Elsewhere a fork
/// would cost the host more than it gains, so there the work is the compute stream's own.
class Branch {
 public:
  /// Whether a graph is being made.
  static bool possible(Device const& device);

  /// In `body`, LibTorch computes beside the compute stream, after what that has so far. `operands`
  /// live until join().
  void run(Device const& device, std::vector<at::Tensor> const& operands,
           std::function<void()> const& body);
  /// Later work of the compute stream waits for the branch's.
  void join();

 private:
  std::shared_ptr<void> stream_;  ///< once there is one
  std::vector<at::Tensor> operands_;
  std::optional<Device> open_;  ///< where it has work that was not joined
};

}  // namespace stratagem::gpu
