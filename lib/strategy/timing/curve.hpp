#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace stratagem {

/// How long something takes by its size, measured at some sizes: affine between two of them and,
/// with the slope there, beyond the last. Below the first it goes with the size from there to half
/// its time at most, since something remains however small the work is.
class Curve {
 public:
  struct Point {
    double size = 0;
    double seconds = 0;
  };

  /// Takes no time.
  Curve() = default;
  /// At rising sizes.
  explicit Curve(std::vector<Point> points) : points_(std::move(points)) {}

  double at(double size) const {
    if (points_.empty()) return 0;
    if (points_.size() == 1) return points_.front().seconds * size / points_.front().size;
    std::size_t next = 1;
    while (next + 1 < points_.size() && points_[next].size < size) ++next;
    auto const &left = points_[next - 1], &right = points_[next];
    auto const slope = (right.seconds - left.seconds) / (right.size - left.size);
    return std::max(left.seconds + slope * (size - left.size), points_.front().seconds / 2);
  }

  /// Everything takes `factor` times as long.
  Curve scaled(double factor) const {
    auto points = points_;
    for (auto& point : points) point.seconds *= factor;
    return Curve(std::move(points));
  }

  std::vector<Point> const& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

}  // namespace stratagem
