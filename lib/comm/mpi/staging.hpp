#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/operation.hpp"
#include "gpu/pinned_pool.hpp"
#include "gpu/stream.hpp"

namespace stratagem {

/// A tensor of an operation, and the directions in which it is copied.
struct Argument {
  enum class Role { in, out, in_out };
  at::Tensor tensor;
  Role role;
};

/// Gives operations host copies of a device's tensors: through reused pinned buffers, with one
/// stream per direction. CPU tensors are used directly. Must outlive the operations.
class Staging {
 public:
  using Make = std::function<std::unique_ptr<Operation>(std::vector<at::Tensor> const&)>;

  explicit Staging(gpu::Device const& device);

  /// The operation that `make` creates for the host tensors. For GPU tensors, it starts when the
  /// compute stream has written the input, and is done when the output has been copied to its
  /// tensors.
  std::unique_ptr<Operation> stage(std::vector<Argument> arguments, Make const& make);

 private:
  friend class StagedOperation;
  gpu::Device device_;
  gpu::Stream outward_, inward_;
  gpu::PinnedPool buffers_;
  std::int64_t messages_made_ = 0;   ///< by the thread that calls stage()
  std::int64_t messages_begun_ = 0;  ///< by the one that advances operations
};

}  // namespace stratagem
