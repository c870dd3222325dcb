#include "comm/serial/serial_communicator.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"

namespace stratagem {
namespace {

Work copied(at::Tensor const& output, at::Tensor const& input) {
  expects(output.numel() == input.numel(), "equal sizes in a group of one");
  if (output.data_ptr() != input.data_ptr()) output.copy_(input);
  return {};
}

}  // namespace

at::Tensor SerialCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  return at::zeros({numel}, at::TensorOptions().dtype(type).device(device_.torch()));
}

Work SerialCommunicator::start_all_reduce(at::Tensor const&) {
  return {};
}
Work SerialCommunicator::start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) {
  return copied(output, input);
}
Work SerialCommunicator::start_all_gather(at::Tensor const& output, at::Tensor const& input) {
  return copied(output, input);
}

Work SerialCommunicator::start_broadcast(at::Tensor const&, int root) {
  expects(root == 0, "the only rank");
  return {};
}

Work SerialCommunicator::send(at::Tensor const&, int, int) {
  expects(false, "another rank to send to");
  return {};
}

Work SerialCommunicator::receive(at::Tensor const&, int, int) {
  expects(false, "another rank to receive from");
  return {};
}

}  // namespace stratagem
