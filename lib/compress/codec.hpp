#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.hpp"
#include "compress/compression.hpp"

namespace stratagem {

/// Writes fp32 numbers in a code and reads them. Sizes are whole blocks.
///
/// | code | bytes of a block | written |
/// | --- | --- | --- |
/// | bf16, fp16 | 64 | each element |
/// | int8, int4 | 33, 17 | a power of two for all, then integers of at most 127 or 7 times it |
/// | natural | 32 | each as a power of two from 2^-99 to 2^26 (Horvath et al., arXiv 1905.10988) |
/// | ternary | 10 | the largest magnitude in bf16, then -1, 0 or 1 (TernGrad, arXiv 1705.07878) |
/// | sign | 6 | the mean magnitude in bf16, then signs (Karimireddy et al., arXiv 1901.09847) |
///
/// Where a block with one scale has a number that is not finite, all its numbers are read as NaN.
class Codec {
 public:
  /// Which random numbers a rounding draws: those of (seed, step, stage, element). Stages are the
  /// workers, and then the sum of theirs.
  struct Draw {
    std::int64_t step = 0;
    int stage = 0;
    std::int64_t first = 0;  ///< element of the flat space at which the values begin
  };

  /// Not for Code::none.
  Codec(Code code, Rounding rounding, std::uint64_t seed);

  std::int64_t wire_bytes(std::int64_t numel) const {
    return stratagem::wire_bytes(code_, numel / block_elements);
  }

  /// wire <- code of values.
  void encode(std::span<float const> values, std::span<std::byte> wire, Draw const& draw) const;
  /// values <- what `wire` says. Any bytes are a code.
  void decode(std::span<std::byte const> wire, std::span<float> values) const;

  /// wire <- code of values + residual; residual <- what the code lost of it. An empty residual
  /// counts as 0 and stays.
  void encode(std::span<float const> values, std::span<float> residual, std::span<std::byte> wire,
              Draw const& draw) const;
  /// values <- values + what `wire` says.
  void decode_and_add(std::span<std::byte const> wire, std::span<float> values) const;
  /// values <- what is read after values + residual were written; residual as above.
  void pass_through(std::span<float> values, std::span<float> residual, Draw const& draw) const;

 private:
  Code code_;
  Rounding rounding_;
  CounterRandom random_;
};

}  // namespace stratagem
