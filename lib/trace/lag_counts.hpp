#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stratagem {

/// How often each lag of a gradient occurred.
class LagCounts {
 public:
  LagCounts() = default;
  /// counts[lag]
  explicit LagCounts(std::span<std::int64_t const> counts)
      : counts_(counts.begin(), counts.end()) {}

  void add(std::int64_t lag);
  std::vector<std::int64_t> const& counts() const { return counts_; }

  std::int64_t total() const;
  /// NaN if nothing was counted; so are quantile() and most().
  double mean() const;
  /// The smallest lag that at most a share 1 - `share` of all exceed.
  double quantile(double share) const;
  double most() const { return quantile(1); }

 private:
  std::vector<std::int64_t> counts_;
};

/// "lag mean 1.02, p50 1, p95 2, p99 3, max 5"
std::string describe(LagCounts const& lags);

}  // namespace stratagem
