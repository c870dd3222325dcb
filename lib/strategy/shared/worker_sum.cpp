#include "strategy/shared/worker_sum.hpp"

#include <vector>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

/// Each rank sums a slice: it receives that of all workers, and sends its sum to all ranks.
class SlicedSum {
 public:
  SlicedSum(std::span<at::Tensor const> own, Communicator& communicator)
      : own_(own), communicator_(communicator) {}

  void run() {
    auto const pieces = exchange_pieces();
    auto const sum = slice(own_.front(), communicator_.rank());
    auto total = pieces.front().clone();
    for (std::size_t worker = 1; worker < pieces.size(); ++worker) total.add_(pieces[worker]);
    sum.copy_(total);
    exchange_sums(sum);
  }

 private:
  at::Tensor slice(at::Tensor const& whole, int rank) const {
    auto const begin = whole.numel() * rank / communicator_.size();
    auto const end = whole.numel() * (rank + 1) / communicator_.size();
    return whole.narrow(0, begin, end - begin);
  }

  /// This rank's slice of all workers.
  std::vector<at::Tensor> exchange_pieces() const {
    std::vector<at::Tensor> pieces;
    std::vector<Work> works;
    for (int rank = 0; rank < communicator_.size(); ++rank)
      for (std::size_t i = 0; i < own_.size(); ++i) {
        auto const mine = slice(own_[i], communicator_.rank());
        if (rank == communicator_.rank()) {
          pieces.push_back(mine);
          continue;
        }
        auto const tag = static_cast<int>(i);
        pieces.push_back(communicator_.allocate(mine.numel(), mine.scalar_type()));
        works.push_back(communicator_.receive(pieces.back(), rank, tag));
        works.push_back(communicator_.send(slice(own_[i], rank), rank, tag));
      }
    for (auto& work : works) work.wait_on_stream();
    return pieces;
  }

  void exchange_sums(at::Tensor const& sum) const {
    auto const tag = static_cast<int>(own_.size());
    std::vector<Work> works;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      if (rank == communicator_.rank()) continue;
      works.push_back(communicator_.receive(slice(own_.front(), rank), rank, tag));
      works.push_back(communicator_.send(sum, rank, tag));
    }
    for (auto& work : works) work.wait_on_stream();
  }

  std::span<at::Tensor const> own_;
  Communicator& communicator_;
};

}  // namespace

Work begin_sum_over_workers(std::span<at::Tensor const> own, Communicator& communicator) {
  at::NoGradGuard const no_grad;
  if (own.size() == 1) return communicator.all_reduce(own.front());
  SlicedSum(own, communicator).run();
  return {};
}

std::int64_t worker_sum_bytes(std::int64_t bytes, int workers_of_rank, int ranks) {
  return (workers_of_rank + 1) * (ranks - 1) * bytes / ranks;
}

}  // namespace stratagem
