#include "strategy/ps/round_counts.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/text.hpp"

namespace stratagem {

RoundCounts RoundCounts::joined(Communicator& communicator) const {
  constexpr std::int64_t others = 4, most_lags = 1024;
  auto const all = at::zeros({others + most_lags}, at::kLong);
  auto* values = all.data_ptr<std::int64_t>();
  values[0] = dropped;
  values[1] = busy_ns;
  values[2] = whole_ns;
  values[3] = overflowed;
  for (std::size_t lag = 0; lag < lags.counts().size(); ++lag)
    values[others + std::min(static_cast<std::int64_t>(lag), most_lags - 1)] += lags.counts()[lag];
  communicator.all_reduce(all).wait_on_host();
  return {.lags = LagCounts({values + others, static_cast<std::size_t>(most_lags)}),
          .dropped = values[0],
          .overflowed = values[3],
          .busy_ns = values[1],
          .whole_ns = values[2]};
}

std::string describe(RoundCounts const& counts, ServerPolicy const& policy) {
  std::string text;
  if (policy.asynchronous() || policy.delay > 0) text += describe(counts.lags) + "; ";
  if (counts.dropped > 0) {
    // All pushes have as many samples, but for one.
    auto const lost =
        static_cast<double>(counts.dropped) / static_cast<double>(counts.lags.total());
    text += str("dropped ", format_count(counts.dropped), " of ", format_count(counts.lags.total()),
                " with ", format_number(100 * lost, 1), " % of the samples",
                counts.overflowed > 0 ? str(", overflowed ", format_count(counts.overflowed)) : "",
                "; ");
  }
  auto const share = static_cast<double>(counts.busy_ns) /
                     static_cast<double>(std::max<std::int64_t>(counts.whole_ns, 1));
  return text + str("servers ", format_number(100 * share, 0), " % busy");
}

}  // namespace stratagem
