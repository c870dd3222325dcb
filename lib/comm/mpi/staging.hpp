#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/operation.hpp"
#include "gpu/stream.hpp"

namespace stratagem {

/// A tensor of an operation, and which way its contents go.
struct Argument {
  enum class Role { in, out, in_out };
  at::Tensor tensor;
  Role role;
};

/// Runs an operation on pinned host copies of GPU tensors: copies out once the compute stream has
/// made them, and back when the operation is done. The tensors are ready when the Work is.
class StagedOperation final : public Operation {
 public:
  StagedOperation(gpu::Device const& device, std::vector<Argument> arguments);

  /// The pinned copies, one for each argument.
  std::vector<at::Tensor> const& host_tensors() const { return host_; }
  /// The operation on host_tensors().
  void set_inner(std::unique_ptr<Operation> inner) { inner_ = std::move(inner); }

  std::string_view name() const override { return inner_->name(); }
  bool collective() const override { return inner_->collective(); }
  State advance() override;

 private:
  gpu::Stream stream_;
  gpu::Event copied_;
  std::vector<Argument> arguments_;
  std::vector<gpu::PinnedBuffer> buffers_;
  std::vector<at::Tensor> host_;
  std::unique_ptr<Operation> inner_;
  bool copying_back_ = false;
};

}  // namespace stratagem
