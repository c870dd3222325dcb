#pragma once

#include "comm/communicator.hpp"
#include "gpu/device.hpp"

namespace stratagem {

/// A group of one rank: every operation is done at once.
class SerialCommunicator final : public Communicator {
 public:
  explicit SerialCommunicator(gpu::Device const& device) : device_(device) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string_view backend() const override { return "serial"; }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override;

  Work send(at::Tensor const& tensor, int peer, int tag) override;
  Work receive(at::Tensor const& tensor, int peer, int tag) override;
  std::int64_t bytes_sent() const override { return 0; }

 private:
  Work start_all_reduce(at::Tensor const& tensor) override;
  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override;
  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override;
  Work start_broadcast(at::Tensor const& tensor, int root) override;
  Work start_barrier() override { return {}; }

  gpu::Device device_;
};

}  // namespace stratagem
