#include "comm/mpi/staging.hpp"

#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace stratagem {

StagedOperation::StagedOperation(gpu::Device const& device, std::vector<Argument> arguments)
    : stream_(gpu::Stream::high_priority(device)),
      copied_(device),
      arguments_(std::move(arguments)) {
  gpu::Event made(device);
  made.record(gpu::Stream::compute(device));
  made.wait_on_stream(stream_);
  for (auto const& [tensor, role] : arguments_) {
    auto const bytes = static_cast<std::size_t>(bytes_of(tensor));
    auto const& buffer = buffers_.emplace_back(device, bytes);
    host_.push_back(at::from_blob(buffer.data(), tensor.sizes(), tensor.scalar_type()));
    if (role != Argument::Role::out)
      gpu::copy_async(buffer.data(), tensor.data_ptr(), bytes, stream_);
  }
  copied_.record(stream_);
}

Operation::State StagedOperation::advance() {
  if (!copied_.done()) return State::stuck;
  if (copying_back_) return State::finished;
  if (auto const state = inner_->advance(); state != State::finished) return state;
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (auto const& [tensor, role] = arguments_[i]; role != Argument::Role::in)
      gpu::copy_async(tensor.data_ptr(), buffers_[i].data(), buffers_[i].size(), stream_);
  copied_.record(stream_);
  copying_back_ = true;
  return State::moved;
}

}  // namespace stratagem
