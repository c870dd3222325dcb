#pragma once

#include <vector>

#include <ATen/ATen.h>

#include "comm/communicator.hpp"
#include "comm/progress.hpp"
#include "gpu/stream.hpp"

namespace stratagem {

/// Runs an operation on pinned host copies of GPU tensors: copies out once the compute stream has
/// made them, and back when the operation is done. The tensors are ready when the Work is.
class StagedOperation final : public Operation {
 public:
  /// `inner` works on host_tensors(), which mirror `tensors` one by one.
  StagedOperation(gpu::Device const& device, std::vector<at::Tensor> tensors)
      : stream_(gpu::Stream::high_priority(device)), copied_(device), tensors_(std::move(tensors)) {
    gpu::Event made(device);
    made.record(gpu::Stream::compute(device));
    made.wait_on_stream(stream_);
    for (auto const& tensor : tensors_) {
      auto const bytes = static_cast<std::size_t>(bytes_of(tensor));
      buffers_.emplace_back(device, bytes);
      host_.push_back(at::from_blob(buffers_.back().data(), tensor.sizes(), tensor.scalar_type()));
      gpu::copy_async(buffers_.back().data(), tensor.data_ptr(), bytes, stream_);
    }
    copied_.record(stream_);
  }

  std::vector<at::Tensor> const& host_tensors() const { return host_; }
  void set_inner(std::unique_ptr<Operation> inner) { inner_ = std::move(inner); }

  bool collective() const override { return inner_->collective(); }
  bool advance() override {
    if (!copied_.done()) return false;
    if (copying_back_) return true;
    if (!inner_->advance()) return false;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      gpu::copy_async(tensors_[i].data_ptr(), buffers_[i].data(), buffers_[i].size(), stream_);
    copied_.record(stream_);
    copying_back_ = true;
    return copied_.done();
  }

 private:
  gpu::Stream stream_;
  gpu::Event copied_;
  std::vector<at::Tensor> tensors_, host_;
  std::vector<gpu::PinnedBuffer> buffers_;
  std::unique_ptr<Operation> inner_;
  bool copying_back_ = false;
};

}  // namespace stratagem
