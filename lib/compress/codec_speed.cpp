#include "compress/codec_speed.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "base/median.hpp"
#include "compress/block_codes.hpp"
#include "compress/codec.hpp"
#include "compress/low_rank_code.hpp"
#include "compress/sparse_code.hpp"

namespace stratagem {
namespace {

/// More than caches hold, as the gradients of a model are.
constexpr std::int64_t numel = std::int64_t{1} << 19, pieces = 16;

/// Gradients and what codes keep of them, in pieces.
class Gradients {
 public:
  /// Different from each other, between -1 and 1.
  Gradients() : values_(pieces * numel), residuals_(pieces * numel) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = static_cast<float>(i * 2654435761U % 2000) * 1e-3F - 1;
  }

  std::span<float> values(std::int64_t piece) { return part(values_, piece); }
  std::span<float> residual(std::int64_t piece) { return part(residuals_, piece); }
  /// As matrices.
  at::Tensor matrix(std::int64_t piece) { return as_matrix(values(piece)); }
  at::Tensor residual_matrix(std::int64_t piece) { return as_matrix(residual(piece)); }

  static constexpr std::int64_t rows = 512, columns = numel / rows;

 private:
  static std::span<float> part(std::vector<float>& all, std::int64_t piece) {
    return std::span(all).subspan(static_cast<std::size_t>(piece * numel), numel);
  }
  static at::Tensor as_matrix(std::span<float> part) {
    return at::from_blob(part.data(), {rows, columns}, at::kFloat);
  }

  std::vector<float> values_, residuals_;
};

/// Median over the pieces [s], per byte of fp32.
template <class Act>
double time_of(Act act) {
  std::vector<double> times;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    auto const begin = monotonic_ns();
    act(piece);
    times.push_back(1e-9 * static_cast<double>(monotonic_ns() - begin));
  }
  return median(std::move(times)) / (numel * sizeof(float));
}

CodecSpeed measure_blocks(Gradients& gradients, Code code, Rounding rounding) {
  Codec const codec(code, rounding, 1);
  std::vector<std::byte> wire(static_cast<std::size_t>(codec.wire_bytes(numel)));
  CodecSpeed speed;
  speed.encode = time_of([&](auto piece) {
    codec.encode(gradients.values(piece), gradients.residual(piece), wire, {});
  });
  speed.decode = time_of([&](auto piece) { codec.decode(wire, gradients.residual(piece)); });
  speed.decode_and_add =
      time_of([&](auto piece) { codec.decode_and_add(wire, gradients.residual(piece)); });
  return speed;
}

CodecSpeed measure_sparse(Gradients& gradients, Code code) {
  constexpr std::int64_t share = 100;  // of the elements one is taken
  CounterRandom const random(1, "codec_speed");
  std::vector<std::uint32_t> places(numel / share);
  std::vector<std::byte> wire(places.size() * sparse_code::element_bytes);
  CodecSpeed speed;
  speed.encode = time_of([&](auto piece) {
    auto const residual = gradients.residual(piece);
    sparse_code::accumulate(gradients.values(piece), residual);
    if (code == Code::top_k)
      sparse_code::select_largest(residual, places);
    else
      sparse_code::draw_places(random, 1, numel, places);
    sparse_code::write(places, residual, wire);
    sparse_code::clear(places, residual);
  });
  speed.decode = time_of([&](auto piece) { std::ranges::fill(gradients.residual(piece), 0.0F); });
  speed.decode_and_add =
      share * time_of([&](auto piece) { sparse_code::add(wire, gradients.residual(piece)); });
  return speed;
}

/// Of matrices, in factors of rank 2.
CodecSpeed measure_low_rank(Gradients& gradients) {
  constexpr std::int64_t rank = 2;
  auto const p = at::zeros({rank, Gradients::rows}, at::kFloat);
  auto const q = at::zeros({rank, Gradients::columns}, at::kFloat);
  low_rank_code::revive(q, CounterRandom(1, "codec_speed"), 0);
  CodecSpeed speed;
  std::span<float> const factor(p.data_ptr<float>(), static_cast<std::size_t>(p.numel()));
  speed.encode = time_of([&](auto piece) {
    auto residual = gradients.residual_matrix(piece);
    residual.add_(gradients.matrix(piece));
    low_rank_code::project(residual, q, p);
    low_rank_code::project_back(residual, p, q);
    low_rank_code::subtract(residual, p, q);
  });
  low_rank_code::project(gradients.matrix(0), q, p);
  speed.decode_and_add = Gradients::columns / rank *
                         time_of([&](auto) { low_rank_code::orthogonalise(factor, rank); });
  speed.decode =
      time_of([&](auto piece) { low_rank_code::multiply(gradients.residual_matrix(piece), p, q); });
  return speed;
}

}  // namespace

std::vector<CodecTimes> measure_codecs() {
  Gradients gradients;
  std::vector<CodecTimes> times;
  for (std::size_t i = 1; i < block_code_names.size(); ++i)
    for (auto const rounding : {Rounding::nearest, Rounding::stochastic}) {
      auto const code = static_cast<Code>(i);
      if (rounding == Rounding::nearest || block_codes::functions_of(code).rounds)
        times.push_back({code, rounding, measure_blocks(gradients, code, rounding)});
    }
  for (auto const code : {Code::top_k, Code::random_k})
    times.push_back({code, Rounding::nearest, measure_sparse(gradients, code)});
  times.push_back({Code::low_rank, Rounding::nearest, measure_low_rank(gradients)});
  return times;
}

double pays_below(Code code, CodecSpeed const& speed, int ranks) {
  auto const sent = 2.0 * (ranks - 1) / ranks;
  return sent * (1 - share_of_fp32(code)) / speed.of_step(ranks);
}

}  // namespace stratagem
