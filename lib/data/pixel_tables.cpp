#include "data/pixel_tables.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace stratagem {

PixelStatistics imagenet_statistics(std::int64_t channels) {
  if (channels == 3) return {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  auto const count = static_cast<std::size_t>(channels);
  return {std::vector(count, 0.449), std::vector(count, 0.226)};
}

PixelTables::PixelTables(PixelStatistics const& statistics) {
  auto const& [means, deviations] = statistics;
  expects(!means.empty() && means.size() == deviations.size(), "every channel has its mean");
  for (std::size_t c = 0; c < means.size(); ++c) {
    auto const mean = static_cast<float>(means[c]);
    auto const deviation = static_cast<float>(deviations[c]);
    Table table;
    for (std::size_t p = 0; p < table.size(); ++p)
      table[p] = (static_cast<float>(p) / 255.0F - mean) / deviation;
    tables_.push_back(table);
  }
}

PixelTables::Table const& PixelTables::of(std::int64_t channel) const {
  return tables_[static_cast<std::size_t>(
      std::min(channel, static_cast<std::int64_t>(tables_.size()) - 1))];
}

}  // namespace stratagem
