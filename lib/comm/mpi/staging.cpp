#include "comm/mpi/staging.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace stratagem {

/// Copies out, runs the operation on the copies, and copies back. Messages begin in the order in
/// which they were made: copies end in that order, too, but one that has just ended may be seen
/// later than the next one.
class StagedOperation final : public Operation {
 public:
  StagedOperation(Staging& staging, std::vector<Argument> arguments, Staging::Make const& make)
      : staging_(staging),
        made_(staging.device_),
        copied_(staging.device_),
        arguments_(std::move(arguments)) {
    made_.record(gpu::Stream::compute(staging_.device_));
    made_.wait_on_stream(staging_.outward_);
    std::vector<at::Tensor> host;
    for (auto const& [tensor, role] : arguments_) {
      auto const bytes = static_cast<std::size_t>(bytes_of(tensor));
      auto const& buffer = buffers_.emplace_back(staging_.buffers_.take(bytes));
      host.push_back(at::from_blob(buffer->data(), tensor.sizes(), tensor.scalar_type()));
      if (role != Argument::Role::out)
        gpu::copy_async(buffer->data(), tensor.data_ptr(), bytes, staging_.outward_);
    }
    copied_.record(staging_.outward_);
    inner_ = make(host);
    if (!inner_->collective()) place_ = staging_.messages_made_++;
  }

  std::string_view name() const override { return inner_->name(); }
  bool collective() const override { return inner_->collective(); }
  std::int64_t in_flight() const override {
    std::int64_t copied = 0;
    for (auto const& [tensor, role] : arguments_) copied += bytes_of(tensor);
    return std::max(copied, inner_->in_flight());
  }

  State advance() override {
    if (!copied_.done()) return State::stuck;
    if (copying_back_) return State::finished;
    if (!begins()) return State::stuck;
    if (auto const state = inner_->advance(); state != State::finished) return state;
    made_.wait_on_stream(staging_.inward_);  // earlier work may still read what is overwritten
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (auto const& [tensor, role] = arguments_[i]; role != Argument::Role::in)
        gpu::copy_async(tensor.data_ptr(), buffers_[i]->data(), buffers_[i]->size(),
                        staging_.inward_);
    copied_.record(staging_.inward_);
    copying_back_ = true;
    return State::moved;
  }

 private:
  /// Whether it has begun, or does now.
  bool begins() {
    if (inner_->collective() || begun_) return true;
    begun_ = staging_.messages_begun_ == place_;
    if (begun_) ++staging_.messages_begun_;
    return begun_;
  }

  Staging& staging_;
  gpu::Event made_, copied_;
  std::vector<Argument> arguments_;
  std::vector<std::shared_ptr<gpu::PinnedBuffer>> buffers_;
  std::unique_ptr<Operation> inner_;
  std::int64_t place_ = 0;  ///< among messages
  bool begun_ = false;
  bool copying_back_ = false;
};

Staging::Staging(gpu::Device const& device)
    : device_(device),
      outward_(gpu::Stream::high_priority(device)),
      inward_(gpu::Stream::high_priority(device)),
      buffers_(device) {}

std::unique_ptr<Operation> Staging::stage(std::vector<Argument> arguments, Make const& make) {
  if (device_.kind == gpu::DeviceKind::cpu) {
    std::vector<at::Tensor> tensors;
    for (auto& argument : arguments) tensors.push_back(std::move(argument.tensor));
    return make(tensors);
  }
  return std::make_unique<StagedOperation>(*this, std::move(arguments), make);
}

}  // namespace stratagem
