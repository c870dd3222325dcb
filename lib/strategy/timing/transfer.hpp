#pragma once

#include <algorithm>
#include <utility>

#include "strategy/timing/curve.hpp"

namespace stratagem {

/// Bytes that ranks move: how long it takes, and how long a core of each rank works on it.
struct Transfer {
  double seconds = 0;
  double core_s = 0;

  friend Transfer operator+(Transfer const& one, Transfer const& other) {
    return {one.seconds + other.seconds, one.core_s + other.core_s};
  }
  friend Transfer operator*(double times, Transfer const& one) {
    return {times * one.seconds, times * one.core_s};
  }
};

/// Transfers by their bytes. As measured, cores work on one until it ends; a slower link holds it
/// up, and cores wait meanwhile.
class TransferTimes {
 public:
  /// Takes no time.
  TransferTimes() = default;
  TransferTimes(Curve measured) : measured_(std::move(measured)) {}

  Transfer at(double bytes) const {
    auto const core_s = measured_.at(bytes);
    return {std::max(core_s, latency_s_ + bytes * byte_s_), core_s};
  }

  /// The same work of cores, on a link that takes `latency_s`, and `byte_s` for each byte.
  TransferTimes over(double latency_s, double byte_s) const {
    auto times = *this;
    times.latency_s_ = latency_s;
    times.byte_s_ = byte_s;
    return times;
  }

 private:
  Curve measured_;
  double latency_s_ = 0, byte_s_ = 0;  ///< of the link
};

}  // namespace stratagem
