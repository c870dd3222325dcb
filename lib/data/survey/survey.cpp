#include "data/survey/survey.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "data/images/orientation.hpp"

namespace stratagem {
namespace {

/// Images between two reports of progress.
constexpr std::int64_t stretch = 256;

/// One image's pixels in numbers.
struct Summary {
  ImageSize size;
  std::vector<double> mean, square;  ///< per channel, of p/255
  std::string damage = {};           ///< why it could not be read
  bool turned = false;               ///< by viewers
};

Summary summarise(Pixels const& pixels, ImageSize const& size) {
  auto const channels = static_cast<std::size_t>(pixels.channels);
  std::vector<std::uint64_t> sums(channels), squares(channels);
  for (std::size_t i = 0; i < pixels.values.size(); ++i) {
    std::uint64_t const value = pixels.values[i];
    sums[i % channels] += value;
    squares[i % channels] += value * value;
  }
  auto const count = static_cast<double>(pixels.height * pixels.width);
  Summary summary{.size = size};
  for (std::size_t c = 0; c < channels; ++c) {
    summary.mean.push_back(static_cast<double>(sums[c]) / count / 255);
    summary.square.push_back(static_cast<double>(squares[c]) / count / (255.0 * 255.0));
  }
  return summary;
}

Summary read_whole(SampleSet const& set, std::int64_t image, std::int64_t channels,
                   ReadBuffer& buffer) {
  constexpr auto never_smaller = std::numeric_limits<std::int64_t>::max();
  ImageSize whole;
  auto const choose = [&whole](ImageSize const& size) {
    whole = size;
    return Region{.height = size.height, .width = size.width};
  };
  try {
    set.store->read(set.first_stored + image, choose, {never_smaller, never_smaller}, channels,
                    buffer);
  } catch (Error const& error) {
    return {.damage = error.what()};
  }
  auto summary = summarise(buffer.pixels, whole);
  bool const has_headers = set.store->channels() == 0;
  summary.turned = has_headers && stated_orientation(buffer.encoded) != 1;
  return summary;
}

Spread spread_of(std::vector<std::int64_t> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

Spread images_per_class(SampleSet const& set, std::int64_t& classes) {
  std::map<std::int64_t, std::int64_t> counts;
  auto const* labels = set.labels.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < set.size(); ++i) ++counts[labels[i]];
  std::vector<std::int64_t> values;
  for (auto const& [label, count] : counts) values.push_back(count);
  classes = std::ssize(values);
  return spread_of(values);
}

}  // namespace

Survey survey(SampleSet const& set, std::int64_t channels, Crew& crew,
              std::function<void(std::int64_t done)> const& told) {
  expects(set.store != nullptr, "the images are on disk");
  Survey result{.images = set.size()};
  result.per_class = images_per_class(set, result.classes);
  std::vector<ReadBuffer> buffers(static_cast<std::size_t>(crew.size()));
  std::vector<std::int64_t> heights, widths;
  std::vector<double> sums(static_cast<std::size_t>(channels)), squares(sums);
  for (std::int64_t begin = 0; begin < set.size(); begin += stretch) {
    std::vector<Summary> part(static_cast<std::size_t>(std::min(stretch, set.size() - begin)));
    crew.for_each(std::ssize(part), [&](std::int64_t i, int member) {
      part[static_cast<std::size_t>(i)] =
          read_whole(set, begin + i, channels, buffers[static_cast<std::size_t>(member)]);
    });
    for (auto const& image : part) {
      if (!image.damage.empty()) {
        result.damaged.push_back(image.damage);
        continue;
      }
      if (image.turned) ++result.turned;
      heights.push_back(image.size.height);
      widths.push_back(image.size.width);
      for (std::size_t c = 0; c < sums.size(); ++c) {
        sums[c] += image.mean[c];
        squares[c] += image.square[c];
      }
    }
    told(begin + std::ssize(part));
  }
  auto const sound = static_cast<double>(heights.size());
  for (std::size_t c = 0; c < sums.size() && sound > 0; ++c) {
    auto const mean = sums[c] / sound;
    result.pixels.mean.push_back(mean);
    result.pixels.stddev.push_back(std::sqrt(std::max(squares[c] / sound - mean * mean, 0.0)));
  }
  result.height = spread_of(std::move(heights));
  result.width = spread_of(std::move(widths));
  return result;
}

}  // namespace stratagem
