#include "comm/clock_offset.hpp"

#include <limits>

#include <ATen/ATen.h>

#include "base/clock.hpp"

namespace stratagem {
namespace {

constexpr int round_trips = 20;
constexpr int tag = Communicator::max_tag;

void answer(Communicator& comm, int peer, at::Tensor& stamp) {
  for (int i = 0; i < round_trips; ++i) {
    comm.receive(stamp, peer, tag).wait_on_host();
    stamp.fill_(monotonic_ns());
    comm.send(stamp, peer, tag).wait_on_host();
  }
}

trace::ClockSample ask(Communicator& comm, at::Tensor& stamp) {
  trace::ClockSample best;
  auto quickest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < round_trips; ++i) {
    auto const asked = monotonic_ns();
    comm.send(stamp, 0, tag).wait_on_host();
    comm.receive(stamp, 0, tag).wait_on_host();
    auto const answered = monotonic_ns();
    auto const trip = answered - asked;
    if (trip >= quickest) continue;
    quickest = trip;
    best = {.offset_to_rank0 = stamp.item<std::int64_t>() - (asked + trip / 2),
            .uncertainty = (trip + 1) / 2};
  }
  return best;
}

}  // namespace

trace::ClockSample measure_clock_offset(Communicator& comm) {
  auto stamp = comm.allocate(1, at::kLong);
  trace::ClockSample sample;
  for (int peer = 1; peer < comm.size(); ++peer) {
    if (comm.rank() == 0) answer(comm, peer, stamp);
    if (comm.rank() == peer) sample = ask(comm, stamp);
    comm.barrier().wait_on_host();
  }
  return sample;
}

}  // namespace stratagem
