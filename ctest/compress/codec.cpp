#include "compress/codec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<float>::infinity();

constexpr Code codes[] = {Code::bf16,    Code::fp16,    Code::int8, Code::int4,
                          Code::natural, Code::ternary, Code::sign};

/// Normal values of many sizes, the same in every run.
std::vector<float> values_of(std::int64_t numel, std::uint64_t seed = 7) {
  CounterRandom const random(seed, "values");
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel; i += 4) {
    auto const size = std::ldexp(1.0, static_cast<int>(random.word(1'000'000 + i / 32) % 20) - 10);
    for (auto const value : to_normal(random.block(static_cast<std::uint64_t>(i))))
      values.push_back(static_cast<float>(size * value));
  }
  values.resize(static_cast<std::size_t>(numel));
  return values;
}

std::vector<std::byte> written(Codec const& codec, std::span<float const> values,
                               Codec::Draw const& draw = {}) {
  std::vector<std::byte> wire(static_cast<std::size_t>(codec.wire_bytes(std::ssize(values))));
  codec.encode(values, wire, draw);
  return wire;
}

std::vector<float> read(Codec const& codec, std::span<std::byte const> wire, std::int64_t numel) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  codec.decode(wire, values);
  return values;
}

std::vector<float> passed(Code code, std::span<float const> values,
                          Rounding rounding = Rounding::nearest, Codec::Draw const& draw = {}) {
  Codec const codec(code, rounding, 1);
  return read(codec, written(codec, values, draw), std::ssize(values));
}

float top_of(std::span<float const> block) {
  float top = 0;
  for (float const value : block) top = std::max(top, std::abs(value));
  return top;
}

/// How far a number of a block may be moved when it is rounded to the nearest.
float allowed(Code code, float value, float top) {
  switch (code) {
    case Code::bf16:
      return std::abs(value) * 0x1p-8F;
    case Code::fp16:
      return std::max(std::abs(value) * 0x1p-11F, 0x1p-25F);
    case Code::int8:
      return top / 64 * 0.501F;  // steps of at most twice a 127th
    case Code::int4:
      return top / 3.5F * 0.501F;
    case Code::natural:
      return std::abs(value) * 0.3334F;
    case Code::ternary:
      return top * 0.504F;
    default:
      return infinity;
  }
}

TEST(Codec, BytesOfTheWire) {
  auto const of = [](Code code) { return Codec(code, Rounding::nearest, 1).wire_bytes(64); };
  EXPECT_EQ(of(Code::bf16), 128);
  EXPECT_EQ(of(Code::fp16), 128);
  EXPECT_EQ(of(Code::int8), 66);
  EXPECT_EQ(of(Code::int4), 34);
  EXPECT_EQ(of(Code::natural), 64);
  EXPECT_EQ(of(Code::ternary), 20);
  EXPECT_EQ(of(Code::sign), 12);
}

TEST(Codec, WhatIsReadIsNear) {
  auto const values = values_of(64 * 96);
  for (auto const code : codes) {
    auto const found = passed(code, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto const block = std::span(values).subspan(i / 32 * 32, 32);
      ASSERT_LE(std::abs(found[i] - values[i]), allowed(code, values[i], top_of(block)))
          << name_of(code) << " of " << values[i];
    }
  }
}

TEST(Codec, SignKeepsSignsAndTheMeanMagnitude) {
  auto const values = values_of(320);
  auto const found = passed(Code::sign, values);
  for (std::size_t begin = 0; begin < values.size(); begin += 32) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + 32; ++i) {
      sum += std::abs(values[i]);
      EXPECT_EQ(std::signbit(found[i]), std::signbit(values[i]));
      EXPECT_EQ(std::abs(found[i]), std::abs(found[begin]));
    }
    EXPECT_NEAR(std::abs(found[begin]), sum / 32, sum / 32 * 0x1p-8);
  }
}

/// What a code has written once, it writes again without a loss: but not a mean magnitude.
TEST(Codec, WhatWasReadIsReadAgain) {
  auto const values = values_of(64 * 32);
  for (auto const code : codes) {
    if (code == Code::sign) continue;
    auto const once = passed(code, values);
    EXPECT_EQ(passed(code, once), once) << name_of(code);
  }
}

TEST(Codec, ZeroStaysZero) {
  std::vector<float> const zeros(64, 0.0F);
  for (auto const code : codes)
    for (auto const rounding : {Rounding::nearest, Rounding::stochastic})
      for (float const value : passed(code, zeros, rounding)) EXPECT_EQ(value, 0.0F);
}

TEST(Codec, NumbersThatAreNotFiniteAreNotHidden) {
  for (auto const code : codes)
    for (float const bad : {nan, infinity, -infinity}) {
      auto values = values_of(96);
      values[40] = bad;
      auto const found = passed(code, values, Rounding::stochastic);
      EXPECT_FALSE(std::isfinite(found[40])) << name_of(code);
      for (std::size_t i : {0U, 31U, 64U, 95U}) EXPECT_TRUE(std::isfinite(found[i]));
    }
}

TEST(Codec, SmallestAndLargestNumbers) {
  constexpr float largest = 0x1.8p126F;
  constexpr auto smallest = std::numeric_limits<float>::denorm_min();
  std::vector<float> values(32, 0.0F);
  values[0] = largest;
  values[1] = -largest;
  for (auto const code : {Code::int8, Code::int4, Code::ternary}) {
    auto const found = passed(code, values);
    EXPECT_NEAR(found[0] / largest, 1, 0.01);
    EXPECT_NEAR(found[1] / largest, -1, 0.01);
    EXPECT_EQ(found[2], 0);
  }
  std::vector<float> const tiny(32, smallest);
  for (auto const code : codes)
    for (float const value : passed(code, tiny)) EXPECT_LE(value, 2 * smallest);
  EXPECT_EQ(passed(Code::natural, values)[0], 0x1p26F) << "the largest that it can say";
}

TEST(Codec, NearestIsUnbiasedOnlyWithDraws) {
  constexpr int draws = 4096;
  std::vector<float> values(32, 0.0F);
  values[0] = 1;
  for (std::size_t i = 1; i < values.size(); ++i) values[i] = 0.031F * static_cast<float>(i) - 0.5F;
  for (auto const code :
       {Code::bf16, Code::fp16, Code::int8, Code::int4, Code::natural, Code::ternary}) {
    std::vector<double> sums(values.size(), 0.0);
    std::vector<double> squares(values.size(), 0.0);
    for (int step = 0; step < draws; ++step) {
      auto const found = passed(code, values, Rounding::stochastic, {.step = step});
      for (std::size_t i = 0; i < values.size(); ++i) {
        sums[i] += found[i];
        squares[i] += static_cast<double>(found[i]) * found[i];
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto const mean = sums[i] / draws;
      auto const deviation = std::sqrt(std::max(squares[i] / draws - mean * mean, 0.0) / draws);
      // Draws have 8 bits: a 512th of what rounding can move a number.
      auto const grain = allowed(code, values[i], 1) * 2 / 256;
      EXPECT_NEAR(mean, values[i], 5 * deviation + grain) << name_of(code) << " " << i;
    }
  }
}

/// Any part of the values has the code that it has in the whole, wherever it is cut.
TEST(Codec, CodesDoNotDependOnCuts) {
  auto const values = values_of(32 * 200);
  for (auto const code : codes) {
    Codec const codec(code, Rounding::stochastic, 3);
    auto const whole = written(codec, values, {.step = 5, .stage = 2, .first = 320});
    for (std::int64_t const begin : {0, 32, 64 * 32, 199 * 32}) {
      auto const rest = std::span(values).subspan(static_cast<std::size_t>(begin));
      auto const part = written(codec, rest, {.step = 5, .stage = 2, .first = 320 + begin});
      EXPECT_TRUE(std::ranges::equal(
          part, std::span(whole).subspan(static_cast<std::size_t>(codec.wire_bytes(begin)))));
    }
  }
}

TEST(Codec, DrawsDifferBySeedStepStageAndElement) {
  auto const values = values_of(320);
  auto const of = [&](std::uint64_t seed, Codec::Draw const& draw) {
    return written(Codec(Code::int8, Rounding::stochastic, seed), values, draw);
  };
  auto const first = of(1, {});
  EXPECT_EQ(of(1, {}), first);
  EXPECT_NE(of(2, {}), first);
  EXPECT_NE(of(1, {.step = 1}), first);
  EXPECT_NE(of(1, {.stage = 1}), first);
  EXPECT_NE(of(1, {.first = 32}), first);
}

/// Written sums and what is still owed add up to all that was given.
TEST(Codec, NothingIsLostWithFeedback) {
  constexpr int steps = 50;
  for (auto const code : codes) {
    Codec const codec(code, Rounding::nearest, 1);
    std::vector<float> residual(640, 0.0F);
    std::vector<double> given(640, 0.0), got(640, 0.0);
    for (int step = 0; step < steps; ++step) {
      auto values = values_of(640, static_cast<std::uint64_t>(step));
      for (std::size_t i = 0; i < given.size(); ++i) given[i] += values[i];
      codec.pass_through(values, residual, {.step = step});
      for (std::size_t i = 0; i < given.size(); ++i) got[i] += values[i];
    }
    for (std::size_t i = 0; i < given.size(); ++i)
      EXPECT_NEAR(got[i] + residual[i], given[i], 1e-2 + std::abs(given[i]) * 1e-4)
          << name_of(code);
  }
}

TEST(Codec, PassThroughIsEncodeAndDecode) {
  auto const values = values_of(32 * 150);
  for (auto const code : codes) {
    Codec const codec(code, Rounding::stochastic, 9);
    Codec::Draw const draw{.step = 3, .stage = 1, .first = 64};
    auto a = values_of(std::ssize(values), 11), b = a, through = values;
    std::vector<std::byte> wire(static_cast<std::size_t>(codec.wire_bytes(std::ssize(values))));
    codec.encode(values, a, wire, draw);
    codec.pass_through(through, b, draw);
    EXPECT_EQ(a, b);
    EXPECT_EQ(through, read(codec, wire, std::ssize(values)));
    auto sums = values;
    codec.decode_and_add(wire, sums);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(sums[i], values[i] + through[i]);
  }
}

/// Whatever arrives is read as some numbers.
TEST(Codec, AnyBytesAreACode) {
  CounterRandom const random(5, "bytes");
  for (auto const code : codes) {
    Codec const codec(code, Rounding::nearest, 1);
    std::vector<std::byte> wire(static_cast<std::size_t>(codec.wire_bytes(32 * 256)));
    for (std::size_t i = 0; i < wire.size(); ++i) wire[i] = static_cast<std::byte>(random.word(i));
    EXPECT_EQ(read(codec, wire, 32 * 256).size(), 32U * 256U);
  }
}

}  // namespace
}  // namespace stratagem
