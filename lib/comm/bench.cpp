#include "comm/bench.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "base/clock.hpp"

namespace stratagem {
namespace {

constexpr int warm_up = 3;

/// One operation with its tensors and the correct result. Values are small whole numbers, so that
/// float32 represents every sum exactly, in any order.
class Subject {
 public:
  Subject(Communicator& comm, BenchOperation operation, std::int64_t bytes)
      : comm_(comm), operation_(operation) {
    auto const ranks = static_cast<std::int64_t>(comm.size());
    bool const parts =
        operation == BenchOperation::reduce_scatter || operation == BenchOperation::all_gather;
    auto const numel = bytes / 4 / (parts ? ranks : 1);
    large_ = comm.allocate(parts ? numel * ranks : numel, at::kFloat);
    small_ = comm.allocate(numel, at::kFloat);
  }

  at::Tensor const& large() const { return large_; }

  void run() {
    switch (operation_) {
      case BenchOperation::all_reduce:
        return comm_.all_reduce(large_).wait_on_host();
      case BenchOperation::reduce_scatter:
        return comm_.reduce_scatter(small_, large_).wait_on_host();
      case BenchOperation::all_gather:
        return comm_.all_gather(large_, small_).wait_on_host();
      case BenchOperation::broadcast:
        return comm_.broadcast(large_, 0).wait_on_host();
      case BenchOperation::send_receive:
        return send_receive();
    }
  }

  /// Runs it once with known values; returns the number of wrong elements of this rank's result.
  std::int64_t count_wrong() {
    int const rank = comm_.rank(), ranks = comm_.size();
    auto const sum = [&](at::Tensor const& pattern) {
      return pattern * ranks + ranks * (ranks - 1) / 2;
    };
    auto const part = [&](at::Tensor const& whole) {
      return whole.narrow(0, rank * small_.numel(), small_.numel());
    };
    auto const pattern = at::arange(large_.numel(), large_.options()).remainder_(17);
    bool const gathers = operation_ == BenchOperation::all_gather;
    (gathers ? small_.copy_(part(pattern)) : large_.copy_(pattern)).add_(gathers ? 0 : rank);
    run();
    switch (operation_) {
      case BenchOperation::all_reduce:
        return different(large_, sum(pattern));
      case BenchOperation::reduce_scatter:
        return different(small_, part(sum(pattern)));
      case BenchOperation::send_receive:
        return different(small_, pattern + (rank + ranks - 1) % ranks);
      default:
        return different(large_, pattern);
    }
  }

 private:
  static std::int64_t different(at::Tensor const& a, at::Tensor const& b) {
    return a.ne(b).sum().item<std::int64_t>();
  }

  void send_receive() {
    int const ranks = comm_.size(), next = (comm_.rank() + 1) % ranks;
    if (ranks == 1) {
      small_.copy_(large_);
      return;
    }
    auto received = comm_.receive(small_, (comm_.rank() + ranks - 1) % ranks, 0);
    comm_.send(large_, next, 0).wait_on_host();
    received.wait_on_host();
  }

  Communicator& comm_;
  BenchOperation operation_;
  at::Tensor large_, small_;
};

at::Tensor of_all_ranks(Communicator& comm, double value) {
  auto const own = comm.allocate(1, at::kDouble), all = comm.allocate(comm.size(), at::kDouble);
  own.fill_(value);
  comm.all_gather(all, own).wait_on_host();
  return all;
}

/// Mean time of one of `iterations` runs [s]; the maximum over ranks.
double time_of(Communicator& comm, int iterations, std::function<void()> const& run) {
  comm.barrier().wait_on_host();
  auto const begin = monotonic_ns();
  for (int i = 0; i < iterations; ++i) run();
  auto const mean = 1e-9 * static_cast<double>(monotonic_ns() - begin) / iterations;
  return of_all_ranks(comm, mean).max().item<double>();
}

/// More and more iterations, until they take about `min_time_s`: where ranks share cores, the next
/// ones may take many times as long as the last.
BenchResult measure(Communicator& comm, BenchOperation operation, std::int64_t numel,
                    double min_time_s, std::function<void()> const& run) {
  constexpr int least = 3, most = 100'000, growth = 8;
  BenchResult result{.bytes = 4 * numel, .numel = numel, .iterations = warm_up};
  result.time_s = std::max(time_of(comm, warm_up, run), 1e-9);
  do {
    auto const wanted = saturated(std::ceil(min_time_s / result.time_s));
    result.iterations = static_cast<int>(
        std::clamp<std::int64_t>(wanted, least, std::min(most, growth * result.iterations)));
    result.time_s = std::max(time_of(comm, result.iterations, run), 1e-9);
  } while (result.iterations < most && result.iterations * result.time_s < min_time_s / 2);
  result.algbw = static_cast<double>(result.bytes) / result.time_s;
  result.busbw = result.algbw * bus_factor(operation, comm.size());
  return result;
}

}  // namespace

double bus_factor(BenchOperation operation, int ranks) {
  double const others = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case BenchOperation::all_reduce:
      return 2 * others;
    case BenchOperation::reduce_scatter:
    case BenchOperation::all_gather:
      return others;
    default:
      return 1;
  }
}

BenchResult bench(Communicator& comm, BenchOperation operation, std::int64_t bytes,
                  double min_time_s) {
  Subject subject(comm, operation, bytes);
  auto const wrong = of_all_ranks(comm, static_cast<double>(subject.count_wrong()));
  subject.large().zero_();  // sums of sums would overflow
  auto result =
      measure(comm, operation, subject.large().numel(), min_time_s, [&] { subject.run(); });
  result.wrong = static_cast<std::int64_t>(wrong.sum().item<double>());
  return result;
}

BenchResult bench_library_all_reduce(Communicator& comm, mpi::Comm const& world, std::int64_t bytes,
                                     double min_time_s) {
  std::vector<float> values(static_cast<std::size_t>(bytes / 4), 1.0F);
  world.library_all_reduce(values);
  auto const right = static_cast<float>(world.size());
  auto const wrong = static_cast<double>(values.size()) -
                     static_cast<double>(std::count(values.begin(), values.end(), right));
  std::fill(values.begin(), values.end(), 0.0F);
  auto result = measure(comm, BenchOperation::all_reduce, static_cast<std::int64_t>(values.size()),
                        min_time_s, [&] { world.library_all_reduce(values); });
  result.wrong = static_cast<std::int64_t>(of_all_ranks(comm, wrong).sum().item<double>());
  return result;
}

double speed_up_over_library(Communicator& comm, mpi::Comm const& world, std::int64_t bytes,
                             int pairs) {
  constexpr int repeats = 3;
  Subject subject(comm, BenchOperation::all_reduce, bytes);
  std::vector<float> values(static_cast<std::size_t>(bytes / 4));
  std::vector<double> ratios;
  for (int pair = -1; pair < pairs; ++pair) {
    auto const library = time_of(comm, repeats, [&] { world.library_all_reduce(values); });
    auto const own = time_of(comm, repeats, [&] { subject.run(); });
    if (pair >= 0) ratios.push_back(library / own);  // the first pair is the warm-up
  }
  auto const middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

}  // namespace stratagem
