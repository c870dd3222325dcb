#include "compress/codec.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/contract.hpp"
#include "compress/block_codes.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t piece = 2048;  // elements; what is in between stays in the L1 cache

/// Calls `act(begin, count)` for pieces of so many elements.
template <class Act>
void for_pieces(std::int64_t numel, Act act) {
  for (std::int64_t begin = 0; begin < numel; begin += piece)
    act(begin, std::min(piece, numel - begin));
}

/// 8 random bits for each of the elements.
void draw_bits(CounterRandom const& random, Codec::Draw const& draw, std::int64_t count,
               std::uint8_t* bits) {
  constexpr std::int64_t per_block = 16;
  auto const sequence =
      static_cast<std::uint64_t>(draw.step) << 16 | static_cast<std::uint64_t>(draw.stage);
  for (std::int64_t i = 0; i < count; i += per_block) {
    auto const words =
        random.block(static_cast<std::uint64_t>((draw.first + i) / per_block), sequence);
    for (std::int64_t j = 0; j < per_block; ++j)
      bits[i + j] =
          static_cast<std::uint8_t>(words[static_cast<std::size_t>(j / 4)] >> (8 * (j % 4)));
  }
}

template <class Byte>
std::span<Byte> part(std::span<Byte> wire, Codec const& codec, std::int64_t begin,
                     std::int64_t count) {
  return wire.subspan(static_cast<std::size_t>(codec.wire_bytes(begin)),
                      static_cast<std::size_t>(codec.wire_bytes(count)));
}

template <class Number>
std::span<Number> part(std::span<Number> values, std::int64_t begin, std::int64_t count) {
  return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

}  // namespace

Codec::Codec(Code code, Rounding rounding, std::uint64_t seed)
    : code_(code), rounding_(rounding), random_(seed, "compression") {
  expects(code != Code::none, "a code");
}

void Codec::encode(std::span<float const> values, std::span<std::byte> wire,
                   Draw const& draw) const {
  auto const numel = std::ssize(values);
  expects(numel % block_elements == 0 && draw.first % block_elements == 0 &&
              std::ssize(wire) == wire_bytes(numel),
          "whole blocks, and room for their code");
  auto const functions = block_codes::functions_of(code_);
  bool const draws = rounding_ == Rounding::stochastic && functions.rounds;
  std::array<std::uint8_t, piece> bits;
  for_pieces(numel, [&](std::int64_t begin, std::int64_t count) {
    if (draws) draw_bits(random_, {draw.step, draw.stage, draw.first + begin}, count, bits.data());
    functions.encode(values.data() + begin, count / block_elements, draws ? bits.data() : nullptr,
                     part(wire, *this, begin, count).data());
  });
}

void Codec::decode(std::span<std::byte const> wire, std::span<float> values) const {
  auto const numel = std::ssize(values);
  expects(numel % block_elements == 0 && std::ssize(wire) == wire_bytes(numel),
          "a code of as many whole blocks");
  block_codes::functions_of(code_).decode(wire.data(), numel / block_elements, values.data());
}

void Codec::encode(std::span<float const> values, std::span<float> residual,
                   std::span<std::byte> wire, Draw const& draw) const {
  if (residual.empty()) return encode(values, wire, draw);
  std::array<float, piece> wanted, read;
  for_pieces(std::ssize(values), [&](std::int64_t begin, std::int64_t count) {
    auto const lost = part(residual, begin, count);
    auto const code = part(wire, *this, begin, count);
    auto const whole = part(std::span<float>(wanted), 0, count),
               decoded = part(std::span<float>(read), 0, count);
    std::ranges::transform(part(values, begin, count), lost, whole.begin(), std::plus());
    encode(whole, code, {draw.step, draw.stage, draw.first + begin});
    decode(code, decoded);
    std::ranges::transform(whole, decoded, lost.begin(), std::minus());
  });
}

void Codec::decode_and_add(std::span<std::byte const> wire, std::span<float> values) const {
  std::array<float, piece> read;
  for_pieces(std::ssize(values), [&](std::int64_t begin, std::int64_t count) {
    auto const sums = part(values, begin, count), more = part(std::span<float>(read), 0, count);
    decode(part(wire, *this, begin, count), more);
    std::ranges::transform(sums, more, sums.begin(), std::plus());
  });
}

void Codec::pass_through(std::span<float> values, std::span<float> residual,
                         Draw const& draw) const {
  std::vector<std::byte> code(static_cast<std::size_t>(wire_bytes(piece)));
  for_pieces(std::ssize(values), [&](std::int64_t begin, std::int64_t count) {
    auto const own = part(values, begin, count);
    auto const lost = residual.empty() ? residual : part(residual, begin, count);
    auto const wire = part(std::span(code), *this, 0, count);
    encode(own, lost, wire, {draw.step, draw.stage, draw.first + begin});
    decode(wire, own);
  });
}

}  // namespace stratagem
