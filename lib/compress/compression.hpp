#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stratagem {

/// How gradients are written for the wire: in blocks of 32 elements; a few elements of each tensor;
/// or as products of thin matrices.
enum class Code { none, bf16, fp16, int8, int4, natural, ternary, sign, top_k, random_k, low_rank };
inline constexpr std::array<std::string_view, 11> code_names{"none",  "bf16",     "fp16",    "int8",
                                                             "int4",  "natural",  "ternary", "sign",
                                                             "top_k", "random_k", "low_rank"};
/// Those that write blocks, beside `none`; they come first.
inline constexpr auto block_code_names = [] {
  std::array<std::string_view, 8> names;
  std::copy_n(code_names.begin(), names.size(), names.begin());
  return names;
}();

/// Those that parameters may be gathered in: the others keep too little of them.
inline constexpr auto parameter_code_names = [] {
  std::array<std::string_view, 5> names;
  std::copy_n(code_names.begin(), names.size(), names.begin());
  return names;
}();

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
  static constexpr std::string_view velocity = "compression_velocity";
  static constexpr std::string_view right_factor = "right_factor";

  Code code = Code::none;
  Rounding rounding = Rounding::nearest;
  /// What a code loses is added to the next gradient (Seide et al., "1-bit stochastic gradient
  /// descent", Interspeech 2014; Karimireddy et al., arXiv 1901.09847).
  bool error_feedback = false;
  double ratio = 0.01;  ///< of top_k and random_k: elements that are sent, of each tensor's
  int matrix_rank = 2;  ///< of low_rank
  /// Of top_k and random_k: momentum is that of a worker's own gradients, and what is sent is a
  /// part of it (Lin et al., "Deep gradient compression", arXiv 1712.01887).
  bool momentum_correction = false;

  bool on() const { return code != Code::none; }
  bool in_blocks() const { return on() && code < Code::top_k; }
  bool sparse() const { return code == Code::top_k || code == Code::random_k; }
  /// Every worker sends which elements it took, so that messages are gathered, not added.
  bool places_travel() const { return code == Code::top_k; }
  bool low_rank() const { return code == Code::low_rank; }
};

/// Elements of a block: parameters begin on these, so that codes depend neither on buckets nor on
/// ranks.
inline constexpr std::int64_t block_elements = 32;

/// Of so many whole blocks, of a code that writes these; Code::none is fp32.
std::int64_t wire_bytes(Code code, std::int64_t blocks);
/// Of the bytes of fp32, those of a code.
inline double share_of_fp32(Code code) {
  return static_cast<double>(wire_bytes(code, 1)) / static_cast<double>(wire_bytes(Code::none, 1));
}

}  // namespace stratagem
