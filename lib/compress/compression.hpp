#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stratagem {

/// How numbers are written for the wire, in blocks of 32 elements.
enum class Code { none, bf16, fp16, int8, int4, natural, ternary, sign };
inline constexpr std::array<std::string_view, 8> code_names{"none", "bf16",    "fp16",    "int8",
                                                            "int4", "natural", "ternary", "sign"};

constexpr std::string_view name_of(Code code) {
  return code_names[static_cast<std::size_t>(code)];
}

enum class Rounding { nearest, stochastic };
inline constexpr std::array<std::string_view, 2> rounding_names{"nearest", "stochastic"};
constexpr std::string_view name_of(Rounding rounding) {
  return rounding_names[static_cast<std::size_t>(rounding)];
}

/// What happens to gradients before they travel. Lossy, so never chosen for the user.
struct Compression {
  static constexpr std::string_view residual = "residual";  ///< kinds of state
  static constexpr std::string_view residual_of_sum = "residual_of_sum";

  Code code = Code::none;
  Rounding rounding = Rounding::nearest;
  /// What a code loses is added to the next gradient (Seide et al., "1-bit stochastic gradient
  /// descent", Interspeech 2014; Karimireddy et al., arXiv 1901.09847).
  bool error_feedback = false;

  bool on() const { return code != Code::none; }
  bool operator==(Compression const&) const = default;
};

/// Elements of a block: parameters begin on these, so that codes depend neither on buckets nor on
/// ranks.
inline constexpr std::int64_t block_elements = 32;

/// Of so many whole blocks; Code::none is fp32.
std::int64_t wire_bytes(Code code, std::int64_t blocks);
/// Of the bytes of fp32, those of a code.
inline double share_of_fp32(Code code) {
  return static_cast<double>(wire_bytes(code, 1)) / static_cast<double>(wire_bytes(Code::none, 1));
}

}  // namespace stratagem
