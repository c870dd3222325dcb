#include "compress/block_codes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <c10/util/Half.h>

#include "base/simd.hpp"

namespace stratagem {

std::int64_t wire_bytes(Code code, std::int64_t blocks) {
  switch (code) {
    case Code::none:
      return 128 * blocks;
    case Code::bf16:
    case Code::fp16:
      return 64 * blocks;
    case Code::int8:
      return 33 * blocks;
    case Code::int4:
      return 17 * blocks;
    case Code::natural:
      return 32 * blocks;
    case Code::ternary:
      return 10 * blocks;
    case Code::sign:
      return 6 * blocks;
    default:  // writes no blocks
      return 0;
  }
}

}  // namespace stratagem

namespace stratagem::block_codes {
namespace {

// What is always inlined is part of loops that are compiled for several instruction sets.

constexpr int n = static_cast<int>(block_elements);
constexpr std::uint32_t magnitude = 0x7fffffff, infinity = 0x7f800000;
constexpr int bias = 127;

[[gnu::always_inline]] inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
[[gnu::always_inline]] inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// Of the largest magnitude in a block; at least `infinity` if some number is not finite.
[[gnu::always_inline]] inline std::uint32_t top_of(float const* x) {
  std::uint32_t top = 0;
  for (int i = 0; i < n; ++i) top = std::max(top, bits_of(x[i]) & magnitude);
  return top;
}

// ---- rounding -----------------------------------------------------------------------------------

/// What is added to the numbers of a block, in units of the last place that stays, before they are
/// rounded to the nearest: 0, or draws from (-1/2, 1/2).
[[gnu::always_inline]] inline void put_shifts(std::uint8_t const* draws, float* shifts) {
  if (draws == nullptr) {
    for (int i = 0; i < n; ++i) shifts[i] = 0;
  } else {
    for (int i = 0; i < n; ++i) shifts[i] = (static_cast<float>(draws[i]) - 127.5F) * 0x1p-8F;
  }
}

/// For magnitudes below 2^22.
[[gnu::always_inline]] inline float rounded(float value) {
  constexpr float shift = 0x1.8p23F;
  return (value + shift) - shift;
}

[[gnu::always_inline]] inline std::uint8_t const* of_block(std::uint8_t const* draws,
                                                           std::int64_t block) {
  return draws == nullptr ? nullptr : draws + block * n;
}

// ---- bf16 and fp16 ------------------------------------------------------------------------------

constexpr std::uint32_t quiet_nan = 0x7fc0;  // in bf16

[[gnu::always_inline]] inline float from_bf16(std::uint16_t half) {
  return float_of(static_cast<std::uint32_t>(half) << 16);
}
[[gnu::always_inline]] inline std::uint16_t to_bf16(std::uint32_t bits, std::uint32_t shift) {
  auto const half = (bits + shift) >> 16;
  return static_cast<std::uint16_t>((bits & magnitude) > infinity ? quiet_nan : half);
}
[[gnu::always_inline]] inline std::uint32_t to_nearest(std::uint32_t bits) {
  return 0x7fff + (bits >> 16 & 1);
}

STRATAGEM_SIMD_CLONES void encode_bf16(float const* x, std::int64_t blocks,
                                       std::uint8_t const* draws, std::byte* wire) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    auto const* const values = x + b * n;
    std::uint32_t shifts[n];
    std::uint16_t half[n];
    if (auto const* const own = of_block(draws, b)) {
      for (int i = 0; i < n; ++i) shifts[i] = static_cast<std::uint32_t>(own[i]) << 8;
    } else {
      for (int i = 0; i < n; ++i) shifts[i] = to_nearest(bits_of(values[i]));
    }
    for (int i = 0; i < n; ++i) half[i] = to_bf16(bits_of(values[i]), shifts[i]);
    std::memcpy(wire + b * sizeof half, half, sizeof half);
  }
}

STRATAGEM_SIMD_CLONES void decode_bf16(std::byte const* wire, std::int64_t blocks, float* y) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::uint16_t half[n];
    std::memcpy(half, wire + b * sizeof half, sizeof half);
    std::uint32_t bits[n];
    for (int i = 0; i < n; ++i) bits[i] = half[i];
    for (int i = 0; i < n; ++i) y[b * n + i] = float_of(bits[i] << 16);
  }
}

/// 13 bits of an fp32 number go.
void encode_fp16(float const* x, std::int64_t blocks, std::uint8_t const* draws, std::byte* wire) {
  for (std::int64_t i = 0; i < blocks * n; ++i) {
    auto value = x[i];
    auto const bits = bits_of(value);
    if (draws != nullptr && (bits & magnitude) < infinity)
      value = float_of((bits + (static_cast<std::uint32_t>(draws[i]) << 5)) & ~0x1fffU);
    c10::Half const half(value);
    std::memcpy(wire + 2 * i, &half.x, 2);
  }
}

void decode_fp16(std::byte const* wire, std::int64_t blocks, float* y) {
  for (std::int64_t i = 0; i < blocks * n; ++i) {
    c10::Half half;
    std::memcpy(&half.x, wire + 2 * i, 2);
    y[i] = half;
  }
}

// ---- integers and one power of two --------------------------------------------------------------

/// The exponent of the power of two, biased: the least with which integers of magnitude `most`, one
/// less than a power of two, reach the largest number.
template <int most>
[[gnu::always_inline]] inline int scale_of(std::uint32_t top) {
  constexpr int digits = std::bit_width(static_cast<unsigned>(most));
  int const scale = static_cast<int>(top >> 23) - (digits - 1);
  if (scale < 1) return 1;
  return float_of(top) > most * float_of(static_cast<std::uint32_t>(scale) << 23) ? scale + 1
                                                                                  : scale;
}

/// Integers of a block, and the byte of its scale: 0xff, and all 0, if some number is not finite.
template <int most>
[[gnu::always_inline]] inline std::byte to_integers(float const* x, std::uint8_t const* draws,
                                                    std::int8_t* q) {
  float shifts[n];
  put_shifts(draws, shifts);
  auto const top = top_of(x);
  bool const finite = top < infinity;
  int const scale = finite ? scale_of<most>(top) : 0xff;
  auto const per_step = finite ? static_cast<std::uint32_t>(2 * bias - scale) << 23 : 0;
  auto const keep = finite ? ~0U : 0U;
  for (int i = 0; i < n; ++i) {
    auto const value = float_of(bits_of(x[i]) & keep) * float_of(per_step) + shifts[i];
    q[i] = static_cast<std::int8_t>(static_cast<int>(rounded(value)));
  }
  return static_cast<std::byte>(scale);
}

/// Infinity for the byte 0xff, by which 0 becomes NaN.
[[gnu::always_inline]] inline float step_of(std::byte scale) {
  return float_of(static_cast<std::uint32_t>(scale) << 23);
}

STRATAGEM_SIMD_CLONES void encode_int8(float const* x, std::int64_t blocks,
                                       std::uint8_t const* draws, std::byte* wire) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int8_t q[n];
    auto* const out = wire + b * (n + 1);
    out[0] = to_integers<127>(x + b * n, of_block(draws, b), q);
    std::memcpy(out + 1, q, n);
  }
}

STRATAGEM_SIMD_CLONES void decode_int8(std::byte const* wire, std::int64_t blocks, float* y) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int8_t q[n];
    auto const step = step_of(wire[b * (n + 1)]);
    std::memcpy(q, wire + b * (n + 1) + 1, n);
    std::int32_t wide[n];
    for (int i = 0; i < n; ++i) wide[i] = q[i];
    for (int i = 0; i < n; ++i) y[b * n + i] = static_cast<float>(wide[i]) * step;
  }
}

/// Byte i holds elements i and i + 16.
STRATAGEM_SIMD_CLONES void encode_int4(float const* x, std::int64_t blocks,
                                       std::uint8_t const* draws, std::byte* wire) {
  constexpr int half = n / 2;
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int8_t q[n];
    std::uint8_t both[half];
    auto* const out = wire + b * (half + 1);
    out[0] = to_integers<7>(x + b * n, of_block(draws, b), q);
    for (int i = 0; i < half; ++i)
      both[i] = static_cast<std::uint8_t>((q[i] & 15) | (q[i + half] & 15) << 4);
    std::memcpy(out + 1, both, half);
  }
}

STRATAGEM_SIMD_CLONES void decode_int4(std::byte const* wire, std::int64_t blocks, float* y) {
  constexpr int half = n / 2;
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::uint8_t both[half];
    auto const step = step_of(wire[b * (half + 1)]);
    std::memcpy(both, wire + b * (half + 1) + 1, half);
    std::int32_t wide[n];
    for (int i = 0; i < half; ++i) wide[i] = both[i] & 15;
    for (int i = 0; i < half; ++i) wide[half + i] = both[i] >> 4;
    for (int i = 0; i < n; ++i) y[b * n + i] = static_cast<float>((wide[i] ^ 8) - 8) * step;
  }
}

// ---- powers of two ------------------------------------------------------------------------------

constexpr int natural_bias = 100, natural_most = 126, natural_nan = 127;

STRATAGEM_SIMD_CLONES void encode_natural(float const* x, std::int64_t blocks,
                                          std::uint8_t const* draws, std::byte* wire) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int32_t least[n];  // of 256ths above a power of two, from which the next one is taken
    std::uint32_t codes[n];
    if (auto const* const own = of_block(draws, b)) {
      for (int i = 0; i < n; ++i) least[i] = own[i] + 1;
    } else {
      for (int i = 0; i < n; ++i) least[i] = 128;
    }
    for (int i = 0; i < n; ++i) {
      auto const bits = bits_of(x[b * n + i]), size = bits & magnitude;
      int const up = static_cast<int>(size >> 15 & 0xff) >= least[i] ? 1 : 0;
      int code = static_cast<int>(size >> 23) + up - bias + natural_bias;
      code = code < 0 ? 0 : code;
      code = code > natural_most ? natural_most : code;
      code = size >= infinity ? natural_nan : code;
      codes[i] = bits >> 31 << 7 | static_cast<std::uint32_t>(code);
    }
    std::uint8_t narrow[n];
    for (int i = 0; i < n; ++i) narrow[i] = static_cast<std::uint8_t>(codes[i]);
    std::memcpy(wire + b * n, narrow, n);
  }
}

STRATAGEM_SIMD_CLONES void decode_natural(std::byte const* wire, std::int64_t blocks, float* y) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::uint8_t codes[n];
    std::memcpy(codes, wire + b * n, n);
    std::uint32_t wide[n];
    for (int i = 0; i < n; ++i) wide[i] = codes[i];
    for (int i = 0; i < n; ++i) {
      std::uint32_t const code = wide[i] & 127;
      auto size = (code + bias - natural_bias) << 23;
      size = code == 0 ? 0 : size;
      size = code == natural_nan ? quiet_nan << 16 : size;
      y[b * n + i] = float_of(wide[i] >> 7 << 31 | size);
    }
  }
}

// ---- a bf16 scale and few bits ------------------------------------------------------------------

constexpr int ternary_bytes = 2 + n / 4, sign_bytes = 2 + n / 8;

/// Not a number if some number of the block is none.
[[gnu::always_inline]] inline void put_scale(std::uint32_t top, float scale, std::byte* wire) {
  auto const bits = bits_of(scale);
  auto const half =
      static_cast<std::uint16_t>(top >= infinity ? quiet_nan : to_bf16(bits, to_nearest(bits)));
  std::memcpy(wire, &half, 2);
}
[[gnu::always_inline]] inline float scale_at(std::byte const* wire) {
  std::uint16_t half;
  std::memcpy(&half, wire, 2);
  return from_bf16(half);
}

/// 2 bits for each: 0, 1 for plus, 2 for minus. Byte i holds elements i, i + 8, i + 16, i + 24.
STRATAGEM_SIMD_CLONES void encode_ternary(float const* x, std::int64_t blocks,
                                          std::uint8_t const* draws, std::byte* wire) {
  constexpr int quarter = n / 4;
  for (std::int64_t b = 0; b < blocks; ++b) {
    auto const* const values = x + b * n;
    auto* const out = wire + b * ternary_bytes;
    auto const top = top_of(values);
    put_scale(top, float_of(top), out);
    auto const scale = scale_at(out);
    float shifts[n];
    put_shifts(of_block(draws, b), shifts);
    std::uint32_t codes[n];
    for (int i = 0; i < n; ++i) {
      auto const bits = bits_of(values[i]), size = bits & magnitude;
      bool const is_one = float_of(size) >= scale * (0.5F - shifts[i]);
      auto const code = 1 + (bits >> 31);
      codes[i] = (is_one & (size > 0)) ? code : 0;
    }
    std::uint8_t four[quarter];
    for (int i = 0; i < quarter; ++i)
      four[i] =
          static_cast<std::uint8_t>(codes[i] | codes[i + quarter] << 2 |
                                    codes[i + 2 * quarter] << 4 | codes[i + 3 * quarter] << 6);
    std::memcpy(out + 2, four, quarter);
  }
}

STRATAGEM_SIMD_CLONES void decode_ternary(std::byte const* wire, std::int64_t blocks, float* y) {
  constexpr int quarter = n / 4;
  for (std::int64_t b = 0; b < blocks; ++b) {
    auto const* const in = wire + b * ternary_bytes;
    auto const scale = scale_at(in);
    std::uint8_t four[quarter];
    std::int32_t codes[n];
    std::memcpy(four, in + 2, quarter);
    for (int part = 0; part < 4; ++part)
      for (int i = 0; i < quarter; ++i) codes[part * quarter + i] = four[i] >> (2 * part) & 3;
    for (int i = 0; i < n; ++i)
      y[b * n + i] = static_cast<float>((codes[i] & 1) - (codes[i] >> 1)) * scale;
  }
}

[[gnu::always_inline]] inline float mean_magnitude(float const* x) {
  constexpr int lanes = n / 2;
  float sums[lanes];
  for (int i = 0; i < lanes; ++i)
    sums[i] = float_of(bits_of(x[i]) & magnitude) + float_of(bits_of(x[lanes + i]) & magnitude);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[half + i];
  return sums[0] * (1.0F / n);
}

STRATAGEM_SIMD_CLONES void encode_sign(float const* x, std::int64_t blocks,
                                       std::uint8_t const* /*draws*/, std::byte* wire) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    auto const* const values = x + b * n;
    auto* const out = wire + b * sign_bytes;
    put_scale(top_of(values), mean_magnitude(values), out);
    std::uint32_t signs = 0;
    for (int i = 0; i < n; ++i) signs |= bits_of(values[i]) >> 31 << i;
    std::memcpy(out + 2, &signs, 4);
  }
}

STRATAGEM_SIMD_CLONES void decode_sign(std::byte const* wire, std::int64_t blocks, float* y) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    auto const* const in = wire + b * sign_bytes;
    auto const scale = bits_of(scale_at(in));
    std::uint32_t signs;
    std::memcpy(&signs, in + 2, 4);
    for (std::uint32_t i = 0; i < n; ++i) y[b * n + i] = float_of(scale ^ (signs >> i & 1) << 31);
  }
}

}  // namespace

Functions functions_of(Code code) {
  switch (code) {
    case Code::bf16:
      return {encode_bf16, decode_bf16, true};
    case Code::fp16:
      return {encode_fp16, decode_fp16, true};
    case Code::int8:
      return {encode_int8, decode_int8, true};
    case Code::int4:
      return {encode_int4, decode_int4, true};
    case Code::natural:
      return {encode_natural, decode_natural, true};
    case Code::ternary:
      return {encode_ternary, decode_ternary, true};
    case Code::sign:
      return {encode_sign, decode_sign, false};
    default:
      return {};
  }
}

}  // namespace stratagem::block_codes
