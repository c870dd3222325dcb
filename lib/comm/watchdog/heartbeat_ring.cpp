#include "comm/watchdog/heartbeat_ring.hpp"

#include <cstring>
#include <limits>
#include <utility>

#include "base/clock.hpp"

namespace stratagem {
namespace {

constexpr int tag = 0;
constexpr std::int64_t period_ns = 500'000'000;
constexpr auto farewell = std::numeric_limits<std::uint64_t>::max();

}  // namespace

HeartbeatRing::HeartbeatRing(mpi::Comm comm, int previous, int next, Slot& upstream)
    : comm_(std::move(comm)), previous_(previous), next_(next), upstream_(upstream) {}

void HeartbeatRing::beat() {
  receive();
  auto const now = monotonic_ns();
  if (now - sent_ns_ < period_ns || !sent_.test()) return;
  sent_ns_ = now;
  send(++count_);
}

bool HeartbeatRing::finish() {
  receive();
  if (!sent_.test()) return false;
  if (!std::exchange(said_farewell_, true)) send(farewell);
  return heard_farewell_ && sent_.test();
}

void HeartbeatRing::send(std::uint64_t count) {
  std::memcpy(outgoing_.data(), &count, sizeof count);
  sent_ = comm_.send(outgoing_, next_, tag);
}

void HeartbeatRing::receive() {
  while (!heard_farewell_) {
    if (upstream_.presence != Presence::absent) {
      if (!heard_.test()) return;
      std::uint64_t count = 0;
      std::memcpy(&count, incoming_.data(), sizeof count);
      heard_farewell_ = count == farewell;
      if (heard_farewell_) {
        upstream_.presence = Presence::left;
        return;
      }
      upstream_.beats = count;
    }
    heard_ = comm_.receive(incoming_, previous_, tag);
    upstream_.presence = Presence::watched;
  }
}

}  // namespace stratagem
