#include "base/console/progress_display.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/console/terminal.hpp"
#include "base/system.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t between_redraws = second / 10, between_lines = 30 * second;

}  // namespace

ProgressDisplay::ProgressDisplay(ProgressStyle style, std::int64_t total_steps,
                                 std::int64_t steps_per_epoch, std::int64_t epochs,
                                 std::string counted)
    : style_(style),
      total_steps_(total_steps),
      steps_per_epoch_(std::max<std::int64_t>(steps_per_epoch, 1)),
      epochs_(epochs),
      started_ns_(monotonic_ns()),
      shown_ns_(started_ns_),
      counted_(std::move(counted)) {
  if (style_ == ProgressStyle::automatic)
    style_ = shows_to_person(STDERR_FILENO) ? ProgressStyle::bar : ProgressStyle::line;
}

void ProgressDisplay::step(std::int64_t done, std::int64_t count, double loss) {
  if (style_ == ProgressStyle::none) return;
  if (first_done_ < 0) first_done_ = done - 1;
  count_ += count;
  auto const now = monotonic_ns();
  bool const tenth =
      done % std::max<std::int64_t>(steps_per_epoch_ / 10, 1) == 0 && now - shown_ns_ > second;
  bool const due = style_ == ProgressStyle::bar ? now - shown_ns_ > between_redraws
                                                : now - shown_ns_ > between_lines || tenth;
  if (!due) return;
  shown_ns_ = now;
  auto const progress = state(done, loss, now);
  if (style_ == ProgressStyle::bar) {
    // In the last column a character may already begin the next line.
    int const columns = std::max(terminal_columns(STDERR_FILENO) - 1, 0);
    std::fprintf(stderr, "\r\033[K%s", progress_bar(progress, columns).c_str());
    bar_visible_ = true;
  } else {
    std::fprintf(stderr, "%s\n", progress_line(progress).c_str());
  }
  std::fflush(stderr);
}

Progress ProgressDisplay::state(std::int64_t done, double loss, std::int64_t now) const {
  auto const elapsed = static_cast<double>(now - started_ns_) / second;
  auto const here = static_cast<double>(std::max<std::int64_t>(done - first_done_, 1));
  return {.done_steps = done,
          .total_steps = total_steps_,
          .epoch = std::min((done - 1) / steps_per_epoch_ + 1, epochs_),
          .epochs = epochs_,
          .loss = loss,
          .per_s = static_cast<std::int64_t>(static_cast<double>(count_) / elapsed),
          .counted = counted_,
          .left_s = elapsed / here * static_cast<double>(total_steps_ - done)};
}

void ProgressDisplay::say(std::string const& line) {
  if (style_ == ProgressStyle::none) return;
  clear();
  std::fprintf(stderr, "%s\n", fold_lines(line, terminal_columns(STDERR_FILENO)).c_str());
  std::fflush(stderr);
}

void ProgressDisplay::clear() {
  if (!bar_visible_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  bar_visible_ = false;
}

}  // namespace stratagem
