#include "comm/mpi/mpi_communicator.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/mpi/mpi_memory.hpp"
#include "comm/node/chained_sum.hpp"
#include "comm/node/node_collective.hpp"
#include "comm/node/spread_gather.hpp"
#include "comm/reduction.hpp"
#include "comm/work/delayed_operation.hpp"

namespace stratagem {
namespace {

using Kind = SlicedCollective::Kind;
using Role = Argument::Role;
using Made = std::pair<std::unique_ptr<Operation>, std::int64_t>;  // and the bytes it sends

constexpr int collective_tags = 16384;  // point-to-point messages have the tags above

void expect_movable(at::Tensor const& tensor) {
  expects(tensor.is_contiguous(), "a contiguous tensor");
}

}  // namespace

MpiCommunicator::MpiCommunicator(mpi::Comm const& comm, gpu::Device const& device,
                                 trace::Recorder* recorder, std::chrono::nanoseconds timeout,
                                 std::chrono::nanoseconds delay,
                                 std::unique_ptr<PeriodicTask> periodic_task, NodeUse const& node)
    : comm_(comm.duplicate()),
      device_(device),
      delay_(delay),
      random_(static_cast<std::uint64_t>(comm.rank()), "delays"),
      staging_(device),
      node_(open_arena(comm_, node, device, NodeOperation::room)),
      mismatch_check_(comm_, collectives()),
      progress_(recorder, timeout, &mismatch_check_, std::move(periodic_task)) {
  for (auto const* name : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
                           "send", "receive", "rma"})
    names_.push_back(recorder != nullptr ? recorder->intern(name) : 0);
  if (!node_.failure.empty())
    remark_ = str("ranks exchange messages, because they cannot share memory: ", node_.failure);
}

at::Tensor MpiCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  if (node_.arena)
    if (auto const tensor = node_.arena->allocate(numel, type)) return *tensor;
  return at::zeros({numel}, at::TensorOptions().dtype(type).device(device_.torch()));
}

std::string MpiCommunicator::route() const {
  if (!node_.arena) return "messages";
  return node_.nodes == 1 ? "node memory" : str("chain of ", node_.nodes, " nodes");
}

int MpiCommunicator::next_tag() {
  sequence_ = (sequence_ + 1) % (collective_tags / SlicedCollective::tags);
  return sequence_ * SlicedCollective::tags;
}

template <class Make>
Work MpiCommunicator::run(Name name, std::vector<Argument> arguments, int peer, Make make) {
  trace::SpanRecord span{.name = names_[static_cast<std::size_t>(name)], .peer = peer};
  auto operation =
      staging_.stage(std::move(arguments), [&](std::vector<at::Tensor> const& tensors) {
        auto [made, bytes] = make(tensors);
        bytes_sent_ += span.bytes = bytes;
        return std::move(made);
      });
  return submit(std::move(operation), span);
}

Work MpiCommunicator::submit(std::unique_ptr<Operation> operation, trace::SpanRecord const& span) {
  if (delay_.count() > 0) {
    auto const share = to_unit_float(random_.word(submitted_++));
    auto const delay = std::chrono::duration_cast<std::chrono::nanoseconds>(delay_ * share);
    operation = std::make_unique<DelayedOperation>(std::move(operation), delay);
  }
  return progress_.submit(std::move(operation), span);
}

Made MpiCommunicator::sliced(Kind kind, at::Tensor const& input, at::Tensor const& output) {
  auto const tag = next_tag();
  auto messages =
      std::make_unique<SlicedCollective>(comm_, kind, input, output, tag, node_.nodes > 1);
  auto const bytes = messages->bytes_to_send();
  if (!node_.arena) return {std::move(messages), bytes};
  auto const number = ++node_collectives_;
  if (node_.nodes == 1)
    return {std::make_unique<NodeCollective>(*node_.arena, kind, input, output, number,
                                             std::move(messages)),
            bytes};
  if (kind == Kind::all_gather)
    return {std::make_unique<SpreadGather>(comm_, *node_.arena, input, output, number, tag), bytes};
  return {std::make_unique<ChainedSum>(comm_, *node_.arena, kind, input, output, number, tag),
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
    return submit(
        std::move(operation),
        {.name = names_[static_cast<std::size_t>(Name::rma)], .bytes = bytes, .peer = peer});
  };
  return std::make_unique<MpiMemory>(comm_, numel, type, staging_, hand_over);
}

}  // namespace stratagem
