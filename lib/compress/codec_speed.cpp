#include "compress/codec_speed.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "compress/block_codes.hpp"
#include "compress/codec.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t numel = std::int64_t{1} << 19;
constexpr int tries = 5;

/// Least time of one of the tries [s], per byte of fp32.
template <class Act>
double best_of(Act act) {
  auto best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < tries; ++i) {
    auto const begin = monotonic_ns();
    act();
    best = std::min(best, monotonic_ns() - begin);
  }
  return 1e-9 * static_cast<double>(best) / (numel * sizeof(float));
}

CodecSpeed measure(Code code, Rounding rounding) {
  Codec const codec(code, rounding, 1);
  std::vector<float> values(numel), residual(numel);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 2000) * 1e-3F - 1;
  std::vector<std::byte> wire(static_cast<std::size_t>(codec.wire_bytes(numel)));
  CodecSpeed speed;
  speed.encode = best_of([&] { codec.encode(values, residual, wire, {}); });
  speed.decode = best_of([&] { codec.decode(wire, residual); });
  speed.decode_and_add = best_of([&] { codec.decode_and_add(wire, residual); });
  return speed;
}

}  // namespace

std::vector<CodecTimes> measure_codecs() {
  std::vector<CodecTimes> times;
  for (std::size_t i = 1; i < block_code_names.size(); ++i)
    for (auto const rounding : {Rounding::nearest, Rounding::stochastic}) {
      auto const code = static_cast<Code>(i);
      if (rounding == Rounding::nearest || block_codes::functions_of(code).rounds)
        times.push_back({code, rounding, measure(code, rounding)});
    }
  return times;
}

double pays_below(Code code, CodecSpeed const& speed, int ranks) {
  auto const sent = 2.0 * (ranks - 1) / ranks;
  return sent * (1 - share_of_fp32(code)) / speed.of_step(ranks);
}

}  // namespace stratagem
