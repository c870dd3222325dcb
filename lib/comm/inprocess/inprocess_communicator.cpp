#include "comm/inprocess/inprocess_communicator.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/inprocess/inprocess_memory.hpp"
#include "comm/inprocess/turns.hpp"
#include "comm/reduction.hpp"

namespace stratagem {
namespace {

enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, barrier };

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
    case Kind::broadcast:
      return "broadcast";
    case Kind::barrier:
      return "barrier";
  }
  return "";
}

std::byte* data(at::Tensor const& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

std::string describe(std::int64_t numel, at::ScalarType type) {
  return str(numel, " ", at::toString(type));
}

void copy_bytes(at::Tensor const& from, std::byte* to) {
  if (data(from) != to) std::copy_n(data(from), bytes_of(from), to);
}

}  // namespace

/// What all ranks have to say alike.
struct CollectiveCall {
  Kind kind;
  std::int64_t numel = 0;
  at::ScalarType type = at::kByte;
  int root = 0;

  bool operator==(CollectiveCall const&) const = default;
  std::string text() const {
    if (kind == Kind::barrier) return "barrier";
    auto const of = str(to_string(kind), " of ", describe(numel, type));
    return kind == Kind::broadcast ? str(of, " from rank ", root) : of;
  }
};

struct InProcessGroup {
  /// A collective that some ranks have reached.
  struct Meeting {
    CollectiveCall call;
    int first;  ///< the rank that came first
    std::vector<at::Tensor> outputs, inputs;
    int arrived = 0;
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
  };
  struct Message {
    at::Tensor tensor;
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
  };
  /// Sends and receives of one (from, to, tag) that have not met; one of the two is empty.
  struct Mailbox {
    std::deque<Message> sends, receives;
  };

  InProcessGroup(int ranks, std::uint64_t seed) : size(ranks), turns(ranks, seed) {}

  int size;
  Turns turns;
  std::map<std::int64_t, Meeting> meetings;  ///< by sequence number
  std::map<std::tuple<int, int, int>, Mailbox> mailboxes;
  std::map<std::size_t, std::shared_ptr<std::vector<at::Tensor>>> memories;  ///< each by rank
};

namespace {

class InProcessWork final : public WorkState {
 public:
  InProcessWork(std::shared_ptr<InProcessGroup> group, int rank, std::string what,
                std::shared_ptr<bool> done)
      : group_(std::move(group)), rank_(rank), what_(std::move(what)), done_(std::move(done)) {}

  bool done() const override {
    group_->turns.pause(rank_);  // whoever asks again and again lets the others go on
    return *done_;
  }
  void wait_on_stream() override { wait_on_host(); }
  void wait_on_host() override {
    group_->turns.wait_until(rank_, what_, [done = done_] { return *done; });
  }

 private:
  std::shared_ptr<InProcessGroup> group_;
  int rank_;
  std::string what_;
  std::shared_ptr<bool> done_;
};

/// The sum over ranks of the part [begin, begin + count) of their inputs.
void sum_part(InProcessGroup::Meeting const& meeting, std::int64_t begin, std::int64_t count,
              std::byte* out) {
  auto const& first = meeting.inputs.front();
  std::vector<std::byte const*> sources;
  for (auto const& input : meeting.inputs)
    sources.push_back(data(input) + begin * static_cast<std::int64_t>(first.element_size()));
  sum_in_order(sources, out, count, first.scalar_type());
}

void carry_out(InProcessGroup::Meeting& meeting) {
  auto const& outputs = meeting.outputs;
  auto const& inputs = meeting.inputs;
  auto const ranks = outputs.size();
  switch (meeting.call.kind) {
    case Kind::all_reduce:
      sum_part(meeting, 0, outputs[0].numel(), data(outputs[0]));
      for (std::size_t rank = 1; rank < ranks; ++rank) copy_bytes(outputs[0], data(outputs[rank]));
      break;
    case Kind::reduce_scatter:
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto const count = outputs[rank].numel();
        sum_part(meeting, static_cast<std::int64_t>(rank) * count, count, data(outputs[rank]));
      }
      break;
    case Kind::all_gather:
      for (auto const& output : outputs)
        for (std::size_t rank = 0; rank < ranks; ++rank)
          copy_bytes(inputs[rank],
                     data(output) + static_cast<std::int64_t>(rank) * bytes_of(inputs[rank]));
      break;
    case Kind::broadcast:
      for (auto const& output : outputs)
        copy_bytes(inputs[static_cast<std::size_t>(meeting.call.root)], data(output));
      break;
    case Kind::barrier:
      break;
  }
  *meeting.done = true;
}

/// Lets the oldest send and receive meet, when there are both.
void deliver(InProcessGroup::Mailbox& mailbox) {
  if (mailbox.sends.empty() || mailbox.receives.empty()) return;
  auto const& from = mailbox.sends.front();
  auto const& to = mailbox.receives.front();
  if (from.tensor.numel() != to.tensor.numel() ||
      from.tensor.scalar_type() != to.tensor.scalar_type())
    throw Error(ExitCode::mismatch, "send and receive differ",
                describe(from.tensor.numel(), from.tensor.scalar_type()) + " sent, " +
                    describe(to.tensor.numel(), to.tensor.scalar_type()) + " expected");
  copy_bytes(from.tensor, data(to.tensor));
  *from.done = *to.done = true;
  mailbox.sends.pop_front();
  mailbox.receives.pop_front();
}

/// What `act` throws is why other ranks may wait in vain.
template <class Act>
void for_all(InProcessGroup& group, Act act) {
  try {
    act();
  } catch (...) {
    group.turns.fail(std::current_exception());
    throw;
  }
}

}  // namespace

InProcessCommunicator::InProcessCommunicator(std::shared_ptr<InProcessGroup> group, int rank)
    : group_(std::move(group)), rank_(rank) {}

int InProcessCommunicator::size() const {
  return group_->size;
}

at::Tensor InProcessCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  return at::zeros({numel}, type);
}

Work InProcessCommunicator::collective(CollectiveCall const& call, at::Tensor const& output,
                                       at::Tensor const& input) {
  expects(!output.defined() || (output.is_contiguous() && input.is_contiguous()),
          "contiguous tensors");
  group_->turns.pause(rank_);
  auto const sequence = sequence_++;
  auto const ranks = static_cast<std::size_t>(size());
  auto& meeting = group_->meetings
                      .try_emplace(sequence, call, rank_, std::vector<at::Tensor>(ranks),
                                   std::vector<at::Tensor>(ranks))
                      .first->second;
  for_all(*group_, [&] {
    if (meeting.call != call)
      throw Error(ExitCode::mismatch, str("collective ", sequence, " differs between ranks"),
                  str(meeting.call.text(), " on rank ", meeting.first, ", ", call.text(),
                      " on rank ", rank_));
  });
  meeting.outputs[static_cast<std::size_t>(rank_)] = output;
  meeting.inputs[static_cast<std::size_t>(rank_)] = input;
  auto const done = meeting.done;
  if (++meeting.arrived == size()) {
    carry_out(meeting);
    group_->meetings.erase(sequence);
  }
  return Work(
      std::make_shared<InProcessWork>(group_, rank_, str(call.text(), " (", sequence, ")"), done));
}

Work InProcessCommunicator::all_reduce(at::Tensor const& tensor) {
  expects(is_summable(tensor.scalar_type()), "a type that can be summed");
  bytes_sent_ += 2 * bytes_of(tensor) * (size() - 1) / size();
  return collective({Kind::all_reduce, tensor.numel(), tensor.scalar_type()}, tensor, tensor);
}

Work InProcessCommunicator::reduce_scatter(at::Tensor const& output, at::Tensor const& input) {
  expects(is_summable(input.scalar_type()), "a type that can be summed");
  expects(input.numel() == output.numel() * size(), "input is N times as large as output");
  bytes_sent_ += bytes_of(output) * (size() - 1);
  return collective({Kind::reduce_scatter, output.numel(), input.scalar_type()}, output, input);
}

Work InProcessCommunicator::all_gather(at::Tensor const& output, at::Tensor const& input) {
  expects(output.numel() == input.numel() * size(), "output is N times as large as input");
  bytes_sent_ += bytes_of(input) * (size() - 1);
  return collective({Kind::all_gather, input.numel(), input.scalar_type()}, output, input);
}

Work InProcessCommunicator::broadcast(at::Tensor const& tensor, int root) {
  expects(root >= 0 && root < size(), "a rank of the group");
  if (rank_ == root) bytes_sent_ += bytes_of(tensor) * (size() - 1);
  return collective({Kind::broadcast, tensor.numel(), tensor.scalar_type(), root}, tensor, tensor);
}

Work InProcessCommunicator::barrier() {
  return collective({Kind::barrier}, {}, {});
}

Work InProcessCommunicator::send(at::Tensor const& tensor, int peer, int tag) {
  expects(tag >= 0 && tag <= max_tag && peer != rank_, "a tag in range and another rank");
  group_->turns.pause(rank_);
  bytes_sent_ += bytes_of(tensor);
  auto& mailbox = group_->mailboxes[{rank_, peer, tag}];
  auto const done = mailbox.sends.emplace_back(tensor).done;
  for_all(*group_, [&] { deliver(mailbox); });
  return Work(std::make_shared<InProcessWork>(group_, rank_, str("send to rank ", peer), done));
}

Work InProcessCommunicator::receive(at::Tensor const& tensor, int peer, int tag) {
  expects(tag >= 0 && tag <= max_tag && peer != rank_, "a tag in range and another rank");
  group_->turns.pause(rank_);
  auto& mailbox = group_->mailboxes[{peer, rank_, tag}];
  auto const done = mailbox.receives.emplace_back(tensor).done;
  for_all(*group_, [&] { deliver(mailbox); });
  return Work(
      std::make_shared<InProcessWork>(group_, rank_, str("receive from rank ", peer), done));
}

std::unique_ptr<RemoteMemory> InProcessCommunicator::share_memory(std::int64_t numel,
                                                                  at::ScalarType type) {
  auto& memories = group_->memories[shared_++];
  if (!memories)
    memories = std::make_shared<std::vector<at::Tensor>>(static_cast<std::size_t>(size()));
  memories->at(static_cast<std::size_t>(rank_)) = at::zeros({numel}, type);
  barrier().wait_on_host();
  return std::make_unique<InProcessMemory>(*this, memories);
}

void run_ranks(int ranks, std::uint64_t seed, std::function<void(Communicator&)> const& body) {
  auto const group = std::make_shared<InProcessGroup>(ranks, seed);
  std::mutex mutex;
  std::exception_ptr first;
  auto const run = [&](int rank) {
    at::set_num_threads(1);
    try {
      group->turns.enter(rank);
      InProcessCommunicator communicator(group, rank);
      body(communicator);
      group->turns.leave(rank);
    } catch (...) {
      {
        std::lock_guard const lock(mutex);
        if (!first) first = std::current_exception();
      }
      group->turns.fail(std::make_exception_ptr(
          Error(ExitCode::peer_lost, str("rank ", rank, " ended with an error"))));
      group->turns.leave(rank);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace stratagem
