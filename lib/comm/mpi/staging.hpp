#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/operation.hpp"
#include "gpu/pinned_pool.hpp"
#include "gpu/stream.hpp"

namespace stratagem {

/// A tensor of an operation, and which way its contents go.
struct Argument {
  enum class Role { in, out, in_out };
  at::Tensor tensor;
  Role role;
};

/// How operations on a device's tensors reach the host: through pinned buffers that are used again
/// and again, on a stream for each way. The CPU's are there. Outlives what it has staged.
class Staging {
 public:
  using Make = std::function<std::unique_ptr<Operation>(std::vector<at::Tensor> const&)>;

  explicit Staging(gpu::Device const& device);

  /// What `make` makes of the tensors on the host. Of a GPU's it runs once the compute stream has
  /// made what goes in, and is done when what comes out is in its tensors.
  std::unique_ptr<Operation> stage(std::vector<Argument> arguments, Make const& make);

 private:
  friend class StagedOperation;
  gpu::Device device_;
  gpu::Stream outward_, inward_;
  gpu::PinnedPool buffers_;
};

}  // namespace stratagem
