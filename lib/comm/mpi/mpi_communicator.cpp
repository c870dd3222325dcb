#include "comm/mpi/mpi_communicator.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/mpi/mpi_memory.hpp"
#include "comm/node/chained_sum.hpp"
#include "comm/node/node_collective.hpp"
#include "comm/node/spread_gather.hpp"
#include "comm/reduction.hpp"

namespace stratagem {
namespace {

using Kind = SlicedCollective::Kind;
using Role = Argument::Role;

constexpr int collective_tags = 16384;  // point-to-point messages have the tags above

void expect_movable(at::Tensor const& tensor) {
  expects(tensor.is_contiguous(), "a contiguous tensor");
}

}  // namespace

MpiCommunicator::MpiCommunicator(mpi::Comm comm, gpu::Device const& device, OnNodes node,
                                 Submission& submission, std::size_t queue, std::string remark)
    : comm_(std::move(comm)),
      device_(device),
      node_(std::move(node)),
      submission_(submission),
      queue_(queue),
      remark_(std::move(remark)) {}

at::Tensor MpiCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  if (node_.part)
    if (auto const tensor = node_.part->allocate(numel, type)) return *tensor;
  return at::zeros({numel}, at::TensorOptions().dtype(type).device(device_.torch()));
}

std::string MpiCommunicator::route() const {
  if (!node_.part) return "messages";
  return node_.nodes == 1 ? "node memory" : str("chain of ", node_.nodes, " nodes");
}

int MpiCommunicator::next_tag() {
  sequence_ = (sequence_ + 1) % (collective_tags / SlicedCollective::tags);
  return sequence_ * SlicedCollective::tags;
}

Work MpiCommunicator::run(Name name, std::vector<Argument> arguments, int peer,
                          Submission::Make const& make) {
  return submission_.run(name, std::move(arguments), peer, queue_, bytes_sent_, make);
}

MpiCommunicator::Made MpiCommunicator::sliced(Kind kind, at::Tensor const& input,
                                              at::Tensor const& output) {
  auto const tag = next_tag();
  auto messages =
      std::make_unique<SlicedCollective>(comm_, kind, input, output, tag, node_.nodes > 1);
  auto const bytes = messages->bytes_to_send();
  if (!node_.part) return {std::move(messages), bytes};
  auto const number = ++node_collectives_;
  if (node_.nodes == 1)
    return {std::make_unique<NodeCollective>(*node_.part, kind, input, output, number,
                                             std::move(messages)),
            bytes};
  if (kind == Kind::all_gather)
    return {std::make_unique<SpreadGather>(comm_, *node_.part, input, output, number, tag), bytes};
  return {std::make_unique<ChainedSum>(comm_, *node_.part, kind, input, output, number, tag),
          bytes};
}

Work MpiCommunicator::start_all_reduce(at::Tensor const& tensor) {
  expect_movable(tensor);
  expects(is_summable(tensor.scalar_type()), "a type that can be summed");
  return run(Name::all_reduce, {{tensor, Role::in_out}}, -1,
             [&](auto const& t) { return sliced(Kind::all_reduce, t[0], t[0]); });
}

Work MpiCommunicator::start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) {
  expect_movable(output);
  expect_movable(input);
  expects(is_summable(input.scalar_type()), "a type that can be summed");
  expects(input.numel() == output.numel() * size(), "input is N times as large as output");
  return run(Name::reduce_scatter, {{input, Role::in}, {output, Role::out}}, -1,
             [&](auto const& t) { return sliced(Kind::reduce_scatter, t[0], t[1]); });
}

Work MpiCommunicator::start_all_gather(at::Tensor const& output, at::Tensor const& input) {
  expect_movable(output);
  expect_movable(input);
  expects(output.numel() == input.numel() * size(), "output is N times as large as input");
  return run(Name::all_gather, {{input, Role::in}, {output, Role::out}}, -1,
             [&](auto const& t) { return sliced(Kind::all_gather, t[0], t[1]); });
}

Work MpiCommunicator::start_broadcast(at::Tensor const& tensor, int root) {
  expect_movable(tensor);
  auto const role = rank() == root ? Role::in : Role::out;
  return run(Name::broadcast, {{tensor, role}}, root, [&](auto const& t) -> Made {
    auto operation = std::make_unique<Broadcast>(comm_, t[0], root, next_tag());
    auto const bytes = operation->bytes_to_send();
    return {std::move(operation), bytes};
  });
}

Work MpiCommunicator::start_barrier() {
  return run(Name::barrier, {}, -1, [&](auto const&) -> Made {
    return {std::make_unique<Barrier>(comm_, next_tag()), 0};
  });
}

Work MpiCommunicator::send(at::Tensor const& tensor, int peer, int tag) {
  expect_movable(tensor);
  expects(tag >= 0 && tag <= max_tag && peer != rank(), "a tag in range and another rank");
  return run(Name::send, {{tensor, Role::in}}, peer, [&](auto const& t) -> Made {
    return {std::make_unique<PointToPoint>(comm_, PointToPoint::Direction::send, t[0], peer,
                                           collective_tags + tag),
            bytes_of(tensor)};
  });
}

Work MpiCommunicator::receive(at::Tensor const& tensor, int peer, int tag) {
  expect_movable(tensor);
  expects(tag >= 0 && tag <= max_tag && peer != rank(), "a tag in range and another rank");
  return run(Name::receive, {{tensor, Role::out}}, peer, [&](auto const& t) -> Made {
    return {std::make_unique<PointToPoint>(comm_, PointToPoint::Direction::receive, t[0], peer,
                                           collective_tags + tag),
            0};
  });
}

std::unique_ptr<RemoteMemory> MpiCommunicator::share_memory(std::int64_t numel,
                                                            at::ScalarType type) {
  auto const hand_over = [this](std::unique_ptr<Operation> operation, int peer,
                                std::int64_t bytes) {
    bytes_sent_ += bytes;
    return submission_.submit(Name::rma, {std::move(operation), bytes}, peer, queue_);
  };
  return std::make_unique<MpiMemory>(comm_, numel, type, submission_.staging(), hand_over);
}

}  // namespace stratagem
