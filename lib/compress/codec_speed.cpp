#include "compress/codec_speed.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "compress/block_codes.hpp"
#include "compress/codec.hpp"
#include "compress/low_rank_code.hpp"
#include "compress/sparse_code.hpp"

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

/// Different from each other, between -1 and 1.
std::vector<float> some_values() {
  std::vector<float> values(numel);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 2000) * 1e-3F - 1;
  return values;
}

CodecSpeed measure_blocks(Code code, Rounding rounding) {
  Codec const codec(code, rounding, 1);
  auto const values = some_values();
  std::vector<float> residual(numel);
  std::vector<std::byte> wire(static_cast<std::size_t>(codec.wire_bytes(numel)));
  CodecSpeed speed;
  speed.encode = best_of([&] { codec.encode(values, residual, wire, {}); });
  speed.decode = best_of([&] { codec.decode(wire, residual); });
  speed.decode_and_add = best_of([&] { codec.decode_and_add(wire, residual); });
  return speed;
}

CodecSpeed measure_sparse(Code code) {
  constexpr std::int64_t share = 100;  // of the elements one is taken
  CounterRandom const random(1, "codec_speed");
  auto const values = some_values();
  std::vector<float> residual(numel);
  std::vector<std::uint32_t> places(numel / share);
  std::vector<std::byte> wire(places.size() * sparse_code::element_bytes);
  CodecSpeed speed;
  speed.encode = best_of([&] {
    sparse_code::accumulate(values, residual);
    if (code == Code::top_k)
      sparse_code::select_largest(residual, places);
    else
      sparse_code::draw_places(random, 1, numel, places);
    sparse_code::write(places, residual, wire);
    sparse_code::clear(places, residual);
  });
  speed.decode = best_of([&] { std::ranges::fill(residual, 0.0F); });
  speed.decode_and_add = share * best_of([&] { sparse_code::add(wire, residual); });
  return speed;
}

/// Of a matrix, in factors of rank 2.
CodecSpeed measure_low_rank() {
  constexpr std::int64_t rank = 2, rows = 512, columns = numel / rows;
  auto gradient = at::empty({rows, columns}, at::kFloat);
  std::ranges::copy(some_values(), gradient.data_ptr<float>());
  auto const residual = at::zeros_like(gradient);
  auto const p = at::zeros({rank, rows}, at::kFloat), q = at::zeros({rank, columns}, at::kFloat);
  low_rank_code::revive(q, CounterRandom(1, "codec_speed"), 0);
  CodecSpeed speed;
  std::span<float> const factor(p.data_ptr<float>(), static_cast<std::size_t>(p.numel()));
  speed.encode = best_of([&] {
    residual.add_(gradient);
    low_rank_code::project(residual, q, p);
    low_rank_code::project_back(residual, p, q);
    low_rank_code::subtract(residual, p, q);
  });
  residual.copy_(gradient);
  low_rank_code::project(residual, q, p);
  speed.decode_and_add =
      best_of([&] { low_rank_code::orthogonalise(factor, rank); }) * columns / rank;
  speed.decode = best_of([&] { low_rank_code::multiply(gradient, p, q); });
  return speed;
}

}  // namespace

std::vector<CodecTimes> measure_codecs() {
  std::vector<CodecTimes> times;
  for (std::size_t i = 1; i < block_code_names.size(); ++i)
    for (auto const rounding : {Rounding::nearest, Rounding::stochastic}) {
      auto const code = static_cast<Code>(i);
      if (rounding == Rounding::nearest || block_codes::functions_of(code).rounds)
        times.push_back({code, rounding, measure_blocks(code, rounding)});
    }
  for (auto const code : {Code::top_k, Code::random_k})
    times.push_back({code, Rounding::nearest, measure_sparse(code)});
  times.push_back({Code::low_rank, Rounding::nearest, measure_low_rank()});
  return times;
}

double pays_below(Code code, CodecSpeed const& speed, int ranks) {
  auto const sent = 2.0 * (ranks - 1) / ranks;
  return sent * (1 - share_of_fp32(code)) / speed.of_step(ranks);
}

}  // namespace stratagem
