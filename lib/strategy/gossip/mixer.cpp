#include "strategy/gossip/mixer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

constexpr int tag = 0;  // one message per sender and mixing, in the order of senders

}  // namespace

Mixer::Mixer(GossipPlan const& plan, Communicator& communicator, std::vector<at::Tensor> inbox)
    : plan_(plan),
      communicator_(communicator),
      inbox_(std::move(inbox)),
      weights_(static_cast<std::size_t>(plan.workers_of_rank()), 1.0),
      tidings_(plan.neighbours.reach()) {}

void Mixer::mix(std::int64_t mixing, std::span<at::Tensor const> x,
                std::span<at::Tensor const> messages) {
  at::NoGradGuard const no_grad;
  for (std::size_t own = 0; own < x.size(); ++own)
    write(first() + static_cast<int>(own), x[own], messages[own]);

  std::vector<int> senders, remote;
  for (int sender = 0; sender < plan_.workers(); ++sender) {
    if (!plan_.heard_on(communicator_.rank(), sender, mixing)) continue;
    senders.push_back(sender);
    if (plan_.rank_of(sender) != communicator_.rank()) remote.push_back(sender);
  }
  std::vector<Work> arrivals;
  auto const post_next = [&] {
    auto const number = arrivals.size();
    if (number < remote.size())
      arrivals.push_back(communicator_.receive(inbox_[number % inbox_.size()],
                                               plan_.rank_of(remote[number]), tag));
  };
  for (std::size_t i = 0; i < inbox_.size(); ++i) post_next();
  auto sends = send(mixing, messages);

  std::size_t arrived = 0;
  for (int const sender : senders) {
    if (plan_.rank_of(sender) == communicator_.rank()) {
      hear(sender, mixing, messages[static_cast<std::size_t>(sender - first())], x);
      continue;
    }
    arrivals[arrived].wait_on_stream();
    hear(sender, mixing, inbox_[arrived % inbox_.size()], x);
    ++arrived;
    post_next();
  }
  for (auto& work : sends) work.wait_on_stream();
  tidings_.end_mixing();
}

void Mixer::write(int worker, at::Tensor const& x, at::Tensor const& message) {
  auto& weight = weights_[static_cast<std::size_t>(worker - first())];
  auto const share = plan_.neighbours.sent(worker), kept = plan_.neighbours.kept(worker);
  auto values = message.narrow(0, 0, x.numel());
  at::mul_out(values, x, at::scalar_tensor(share));
  std::vector<double> told{share * weight};
  std::ranges::copy(tidings_.ages(), std::back_inserter(told));
  message.narrow(0, x.numel(), tail).copy_(at::tensor(told, at::kDouble));
  x.mul_(kept);
  weight *= kept;
}

std::vector<Work> Mixer::send(std::int64_t mixing, std::span<at::Tensor const> messages) {
  std::vector<Work> works;
  for (std::size_t own = 0; own < messages.size(); ++own)
    for (int rank = 0; rank < plan_.ranks; ++rank)
      if (rank != communicator_.rank() &&
          plan_.heard_on(rank, first() + static_cast<int>(own), mixing))
        works.push_back(communicator_.send(messages[own], rank, tag));
  return works;
}

void Mixer::hear(int sender, std::int64_t mixing, at::Tensor const& message,
                 std::span<at::Tensor const> x) {
  auto const n = x.front().numel();
  auto const told = message.narrow(0, n, tail).to(at::kCPU, at::kDouble);
  auto const* of = told.data_ptr<double>();
  tidings_.hear(of + 1);
  for (std::size_t own = 0; own < x.size(); ++own) {
    if (!plan_.neighbours.hears(first() + static_cast<int>(own), sender, mixing)) continue;
    x[own].add_(message.narrow(0, 0, n));
    weights_[own] += of[0];
  }
}

}  // namespace stratagem
