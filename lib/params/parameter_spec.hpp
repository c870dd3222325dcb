#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace stratagem {

/// The distribution of a parameter's initial values.
struct Initialiser {
  enum class Kind { constant, uniform, normal, truncated_normal };

  static Initialiser constant(double value) { return {Kind::constant, value, 0}; }
  static Initialiser uniform(double bound) { return {Kind::uniform, -bound, bound}; }
  static Initialiser normal(double stddev) { return {Kind::normal, 0, stddev}; }
  /// Normal values whose absolute value exceeds `cut` are drawn again.
  static Initialiser truncated_normal(double stddev, double cut) {
    return {Kind::truncated_normal, cut, stddev};
  }

  Kind kind = Kind::constant;
  double a = 0;  ///< the value / lower bound / mean / cut
  double b = 0;  ///< - / upper bound / standard deviation / standard deviation
};

/// A parameter as a block declares it; it owns no memory.
struct ParameterSpec {
  std::string name;                 ///< as in torchvision's state_dict
  std::vector<std::int64_t> shape;  ///< of this part
  Initialiser initialiser;
  bool keep_fp32 = false;  ///< stays fp32 when the model computes in 16 bit (norms)
  /// For a part of a larger tensor: its first row there, and the number of rows of that tensor. 0
  /// rows: not a part.
  std::int64_t row_begin = 0;
  std::int64_t total_rows = 0;
  bool stacked = false;  ///< the first dimension counts equal parameters that stand together

  /// A bias or the scale of a norm, or several.
  bool is_vector() const { return shape.size() <= (stacked ? 2 : 1); }
  std::int64_t numel() const {
    std::int64_t product = 1;
    for (auto extent : shape) product *= extent;
    return product;
  }
  bool is_part() const { return total_rows > 0; }
};

/// State that is not trained: running statistics and their counter.
struct BufferSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  at::ScalarType type = at::kFloat;
  double value = 0;  ///< initial value of all elements
  bool counts_passes =
      false;  ///< grows by 1 in a training pass, which whoever runs the block sees to
};

}  // namespace stratagem
