#pragma once

#include <memory>

#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace stratagem::test {

/// A communicator for a device, on fakes of which host memory takes the device's place: all but the
/// allocation is its own. Counts how often its rank waited on the host.
class HostCommunicator final : public Communicator {
 public:
  explicit HostCommunicator(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view backend() const override { return inner_.backend(); }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    return at::zeros({numel}, type);
  }
  Work send(at::Tensor const& tensor, int peer, int tag) override {
    return counted(inner_.send(tensor, peer, tag));
  }
  Work receive(at::Tensor const& tensor, int peer, int tag) override {
    return counted(inner_.receive(tensor, peer, tag));
  }
  std::unique_ptr<RemoteMemory> share_memory(std::int64_t numel, at::ScalarType type) override {
    return inner_.share_memory(numel, type);
  }
  std::int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  void repeat(Kept const& kept) override {
    Communicator::repeat(kept);
    inner_.repeat(kept);
  }
  int waits_on_host() const { return waits_on_host_; }

 private:
  class Counted final : public WorkState {
   public:
    Counted(Work inner, int& waits_on_host)
        : inner_(std::move(inner)), waits_on_host_(waits_on_host) {}

    bool done() const override { return inner_.done(); }
    void wait_on_stream() override { inner_.wait_on_stream(); }
    void wait_on_host() override {
      ++waits_on_host_;
      inner_.wait_on_host();
    }

   private:
    Work inner_;
    int& waits_on_host_;
  };

  Work counted(Work inner) {
    return Work(std::make_shared<Counted>(std::move(inner), waits_on_host_));
  }

  Work start_all_reduce(at::Tensor const& tensor) override {
    return counted(inner_.all_reduce(tensor));
  }
  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override {
    return counted(inner_.reduce_scatter(output, input));
  }
  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override {
    return counted(inner_.all_gather(output, input));
  }
  Work start_broadcast(at::Tensor const& tensor, int root) override {
    return counted(inner_.broadcast(tensor, root));
  }
  Work start_barrier() override { return counted(inner_.barrier()); }

  Communicator& inner_;
  int waits_on_host_ = 0;
};

}  // namespace stratagem::test
