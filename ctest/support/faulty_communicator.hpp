#pragma once

#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace stratagem::test {

/// What a rank does instead of one all-reduce or reduce-scatter.
enum class Fault { skip, other_type, fewer };

/// A communicator whose rank makes a mistake, which then stands in its log.
class FaultyCommunicator final : public Communicator {
 public:
  /// At its `nth` collective that sums, counted from 0; -1 never.
  FaultyCommunicator(Communicator& inner, Fault fault, int nth)
      : inner_(inner), fault_(fault), nth_(nth) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view backend() const override { return inner_.backend(); }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    return inner_.allocate(numel, type);
  }
  CollectiveLog const& collectives() const override { return inner_.collectives(); }
  Work send(at::Tensor const& tensor, int peer, int tag) override {
    return inner_.send(tensor, peer, tag);
  }
  Work receive(at::Tensor const& tensor, int peer, int tag) override {
    return inner_.receive(tensor, peer, tag);
  }
  std::unique_ptr<RemoteMemory> share_memory(std::int64_t numel, at::ScalarType type) override {
    return inner_.share_memory(numel, type);
  }
  std::int64_t bytes_sent() const override { return inner_.bytes_sent(); }

 private:
  Work start_all_reduce(at::Tensor const& tensor) override {
    if (sums_++ != nth_) return inner_.all_reduce(tensor);
    switch (fault_) {
      case Fault::skip:
        return {};
      case Fault::other_type:
        return inner_.all_reduce(tensor.view(at::kBFloat16));
      case Fault::fewer:
        return inner_.all_reduce(tensor.narrow(0, 0, tensor.numel() - 32));
    }
    return {};
  }
  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override {
    if (sums_++ != nth_) return inner_.reduce_scatter(output, input);
    switch (fault_) {
      case Fault::skip:
        return {};
      case Fault::other_type:
        return inner_.reduce_scatter(output.view(at::kBFloat16), input.view(at::kBFloat16));
      case Fault::fewer: {
        auto const count = output.numel() - 1;
        return inner_.reduce_scatter(output.narrow(0, 0, count),
                                     input.narrow(0, 0, count * size()));
      }
    }
    return {};
  }
  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override {
    return inner_.all_gather(output, input);
  }
  Work start_broadcast(at::Tensor const& tensor, int root) override {
    return inner_.broadcast(tensor, root);
  }
  Work start_barrier() override { return inner_.barrier(); }

  Communicator& inner_;
  Fault fault_;
  int nth_;
  int sums_ = 0;
};

}  // namespace stratagem::test
