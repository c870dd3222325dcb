#include "base/console/progress_line.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"

namespace stratagem {
namespace {

/// The more that is shown, the longer the line.
struct Parts {
  std::int64_t bar = 0;  ///< characters between its brackets
  bool speed = true, loss = true, epoch = true, left = true;
};

std::string line(Progress const& progress, Parts const& parts) {
  std::string text;
  if (parts.bar > 0) {
    auto const filled = static_cast<std::size_t>(parts.bar * progress.done_steps /
                                                 std::max<std::int64_t>(progress.total_steps, 1));
    text = "[" + std::string(filled, '=') +
           std::string(static_cast<std::size_t>(parts.bar) - filled, ' ') + "] ";
  }
  if (parts.epoch) text += str("epoch ", progress.epoch, "/", progress.epochs, "  ");
  text += str("step ", progress.done_steps, "/", progress.total_steps);
  if (parts.loss) text += "  loss " + format_number(progress.loss, 4);
  if (parts.speed) text += str("  ", format_count(progress.per_s), " ", progress.counted, "/s");
  if (parts.left) text += "  left " + format_whole_seconds(progress.left_s);
  return text;
}

}  // namespace

std::string progress_line(Progress const& progress) {
  return line(progress, {});
}

std::string progress_bar(Progress const& progress, int columns) {
  static constexpr std::array<Parts, 7> choices{
      {{.bar = 24},
       {.bar = 10},
       {},
       {.speed = false},
       {.speed = false, .loss = false},
       {.speed = false, .loss = false, .epoch = false},
       {.speed = false, .loss = false, .epoch = false, .left = false}}};
  std::string text;
  auto const room = static_cast<std::size_t>(std::max(columns, 0));
  for (auto const& parts : choices) {
    text = line(progress, parts);
    if (room == 0 || text.size() <= room) return text;
  }
  return text.substr(0, room);
}

}  // namespace stratagem
