#include "trace/lag_counts.hpp"

#include <limits>
#include <numeric>

#include "base/text.hpp"

namespace stratagem {

void LagCounts::add(std::int64_t lag) {
  auto const place = static_cast<std::size_t>(lag);
  if (counts_.size() <= place) counts_.resize(place + 1);
  ++counts_[place];
}

std::int64_t LagCounts::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

double LagCounts::mean() const {
  double sum = 0;
  for (std::size_t lag = 0; lag < counts_.size(); ++lag)
    sum += static_cast<double>(lag) * static_cast<double>(counts_[lag]);
  return sum / static_cast<double>(total());
}

double LagCounts::quantile(double share) const {
  auto const wanted = share * static_cast<double>(total());
  std::int64_t seen = 0;
  for (std::size_t lag = 0; lag < counts_.size(); ++lag) {
    seen += counts_[lag];
    if (seen > 0 && static_cast<double>(seen) >= wanted) return static_cast<double>(lag);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string describe(LagCounts const& lags) {
  auto const at = [&](double share) { return format_number(lags.quantile(share), 0); };
  return str("lag mean ", format_number(lags.mean(), 2), ", p50 ", at(0.5), ", p95 ", at(0.95),
             ", p99 ", at(0.99), ", max ", at(1));
}

}  // namespace stratagem
