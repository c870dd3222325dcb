#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace stratagem {

/// Mean and standard deviation per channel, of pixels scaled to [0, 1].
struct PixelStatistics {
  std::vector<double> mean, stddev;
};

/// Those of ImageNet, which most weights for photographs were trained with; for another number of
/// channels than 3, their averages.
PixelStatistics imagenet_statistics(std::int64_t channels);

/// What every pixel value p of a channel becomes: (p/255 - mean)/stddev, in fp32.
class PixelTables {
 public:
  using Table = std::array<float, 256>;

  explicit PixelTables(PixelStatistics const& statistics);

  /// Of `channel`; further ones are as the last.
  Table const& of(std::int64_t channel) const;

 private:
  std::vector<Table> tables_;
};

}  // namespace stratagem
