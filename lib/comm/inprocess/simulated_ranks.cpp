#include "comm/inprocess/simulated_ranks.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/communicator.hpp"
#include "comm/reduction.hpp"

namespace stratagem {
namespace {

using Kind = CollectiveCall::Kind;

std::string describe(at::Tensor const& tensor) {
  return str(tensor.numel(), " ", at::toString(tensor.scalar_type()));
}

class InProcessWork final : public WorkState {
 public:
  InProcessWork(std::shared_ptr<SimulatedRanks> shared, int rank, std::string what,
                std::shared_ptr<bool> done)
      : shared_(std::move(shared)), rank_(rank), what_(std::move(what)), done_(std::move(done)) {}

  bool done() const override {
    shared_->poll(rank_);  // a rank that keeps asking lets the others continue
    return *done_;
  }
  void wait_on_stream() override { wait_on_host(); }
  void wait_on_host() override { shared_->wait(rank_, what_, done_); }

 private:
  std::shared_ptr<SimulatedRanks> shared_;
  int rank_;
  std::string what_;
  std::shared_ptr<bool> done_;
};

at::Tensor sum_of(std::vector<at::Tensor> const& inputs) {
  auto const sum = at::empty_like(inputs.front());
  std::vector<std::byte const*> sources;
  for (auto const& input : inputs) sources.push_back(data_of(input));
  sum_in_order(sources, data_of(sum), sum.numel(), sum.scalar_type());
  return sum;
}

at::Tensor joined(std::vector<at::Tensor> const& inputs) {
  std::vector<at::Tensor> flat;
  for (auto const& input : inputs) flat.push_back(input.flatten());
  return at::cat(flat);
}

/// The results of the ranks; of a reduce-scatter, each rank gets its part.
at::Tensor result_of(CollectiveCall const& call, std::vector<at::Tensor> const& inputs) {
  at::NoGradGuard const no_grad;
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      return sum_of(inputs);
    case Kind::all_gather:
      return joined(inputs);
    case Kind::broadcast:
      return inputs[static_cast<std::size_t>(call.root)].clone();
    case Kind::barrier:
      break;
  }
  return at::empty({0});
}

}  // namespace

void copy_bytes(at::Tensor const& from, at::Tensor const& to) {
  auto const bytes = static_cast<std::size_t>(bytes_of(from));
  if (bytes > 0) std::memcpy(to.data_ptr(), from.data_ptr(), bytes);
}

SimulatedRanks::SimulatedRanks(int ranks, std::uint64_t seed, std::optional<Death> death)
    : all_{"", std::vector<int>(static_cast<std::size_t>(ranks))},
      network_(seed),
      turns_(ranks, seed, [this] { return network_.deliver_one(); }),
      death_(death) {
  std::iota(all_.ranks.begin(), all_.ranks.end(), 0);
}

void SimulatedRanks::live(int rank) {
  if (!death_ || death_->rank != rank) return;
  if (lived_++ == death_->calls) network_.lose(rank);
  expect_alive(rank);
}

void SimulatedRanks::expect_alive(int rank) const {
  if (death_ && death_->rank == rank && lived_ > death_->calls)
    throw Error(ExitCode::peer_lost, str("rank ", rank, " is dead"));
}

void SimulatedRanks::begin(int rank) {
  live(rank);
  turns_.pause(rank);
}

void SimulatedRanks::wait(int rank, std::string const& what, std::shared_ptr<bool> const& done) {
  live(rank);
  turns_.wait_until(rank, what, [done] { return *done; });
}

void SimulatedRanks::poll(int rank) {
  live(rank);
  turns_.poll(rank);
}

Work SimulatedRanks::work(int rank, std::string what, std::shared_ptr<bool> done) {
  return Work(
      std::make_shared<InProcessWork>(shared_from_this(), rank, std::move(what), std::move(done)));
}

template <class Act>
void SimulatedRanks::for_all(Act act) {
  try {
    act();
  } catch (...) {
    turns_.fail(std::current_exception());
    throw;
  }
}

Work SimulatedRanks::meet(SimulatedGroup const& group, int rank, std::int64_t sequence,
                          CollectiveCall const& call, at::Tensor const& output,
                          at::Tensor const& input) {
  auto const ranks = group.ranks.size();
  std::pair const key(group.name, sequence);
  auto& meeting = meetings_
                      .try_emplace(key, group.ranks, call, rank, std::vector<at::Tensor>(ranks),
                                   std::vector<at::Tensor>(ranks))
                      .first->second;
  auto const of_group = group.name.empty() ? std::string() : " of " + group.name;
  for_all([&] {
    if (meeting.call != call)
      throw Error(ExitCode::mismatch,
                  str("collective ", sequence, of_group, " differs between ranks"),
                  str(meeting.call.text(), " on rank ", meeting.first, ", ", call.text(),
                      " on rank ", rank));
  });
  auto const own =
      static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  meeting.outputs[own] = output;
  meeting.inputs[own] = input;
  meeting.done.resize(ranks);
  auto const done = meeting.done[own] = std::make_shared<bool>(false);
  if (++meeting.arrived == ranks) {
    carry_out(meeting);
    meetings_.erase(key);
  }
  return work(rank, str(call.text(), " (", sequence, of_group, ")"), done);
}

void SimulatedRanks::carry_out(Meeting const& meeting) {
  // Inputs are read at one time and outputs are written at other times, separately for each rank.
  network_.add(meeting.ranks, [this, meeting] {
    auto const result = result_of(meeting.call, meeting.inputs);
    bool const cut = meeting.call.kind == Kind::reduce_scatter;
    auto const count = meeting.call.numel;
    for (std::size_t own = 0; own < meeting.ranks.size(); ++own) {
      auto const begin = static_cast<std::int64_t>(own) * count;
      auto const part = cut ? result.flatten().narrow(0, begin, count) : result;
      network_.add(meeting.ranks, [part, output = meeting.outputs[own], done = meeting.done[own]] {
        if (output.defined()) copy_bytes(part, output);
        *done = true;
      });
    }
  });
}

void SimulatedRanks::send(Route const& route, Message message) {
  auto& mailbox = mailboxes_[route];
  mailbox.sends.push_back(std::move(message));
  match(route, mailbox);
}

void SimulatedRanks::receive(Route const& route, Message message) {
  auto& mailbox = mailboxes_[route];
  mailbox.receives.push_back(std::move(message));
  match(route, mailbox);
}

/// Matches the oldest send with the oldest receive, if there are both.
void SimulatedRanks::match(Route const& route, Mailbox& mailbox) {
  if (mailbox.sends.empty() || mailbox.receives.empty()) return;
  auto const source = mailbox.sends.front(), target = mailbox.receives.front();
  for_all([&] {
    if (source.tensor.numel() != target.tensor.numel() ||
        source.tensor.scalar_type() != target.tensor.scalar_type())
      throw Error(ExitCode::mismatch, "send and receive differ",
                  describe(source.tensor) + " sent, " + describe(target.tensor) + " expected");
  });
  mailbox.sends.pop_front();
  mailbox.receives.pop_front();
  network_.add({route.from, route.to}, [source, target] {
    copy_bytes(source.tensor, target.tensor);
    *source.done = *target.done = true;
    if (target.then) target.then();
  });
}

SimulatedRanks::Memories SimulatedRanks::memories(SimulatedGroup const& group, std::size_t number) {
  auto& memories = memories_[{group.name, number}];
  if (!memories) memories = std::make_shared<std::vector<at::Tensor>>(group.ranks.size());
  return memories;
}

}  // namespace stratagem
