#include "train/progress_display.hpp"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t between_redraws = second / 10, between_lines = 30 * second;

}  // namespace

ProgressDisplay::ProgressDisplay(ProgressStyle style, std::int64_t total_steps,
                                 std::int64_t steps_per_epoch, std::int64_t epochs)
    : style_(style),
      total_steps_(total_steps),
      steps_per_epoch_(std::max<std::int64_t>(steps_per_epoch, 1)),
      epochs_(epochs),
      started_ns_(monotonic_ns()),
      shown_ns_(started_ns_) {
  if (style_ == ProgressStyle::automatic)
    style_ = shows_to_person(STDERR_FILENO) ? ProgressStyle::bar : ProgressStyle::line;
}

void ProgressDisplay::step(std::int64_t done, std::int64_t samples, double loss) {
  if (style_ == ProgressStyle::none) return;
  if (first_done_ < 0) first_done_ = done - 1;
  samples_ += samples;
  auto const now = monotonic_ns();
  bool const tenth =
      done % std::max<std::int64_t>(steps_per_epoch_ / 10, 1) == 0 && now - shown_ns_ > second;
  bool const due = style_ == ProgressStyle::bar ? now - shown_ns_ > between_redraws
                                                : now - shown_ns_ > between_lines || tenth;
  if (!due) return;
  shown_ns_ = now;
  auto const text = state(done, loss, now);
  if (style_ == ProgressStyle::bar) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    bar_visible_ = true;
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

std::string ProgressDisplay::state(std::int64_t done, double loss, std::int64_t now) const {
  auto const elapsed = static_cast<double>(now - started_ns_) / second;
  auto const here = static_cast<double>(std::max<std::int64_t>(done - first_done_, 1));
  auto const left = elapsed / here * static_cast<double>(total_steps_ - done);
  std::string bar;
  if (style_ == ProgressStyle::bar) {
    constexpr std::int64_t width = 24;
    auto const filled =
        static_cast<std::size_t>(width * done / std::max<std::int64_t>(total_steps_, 1));
    bar = "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] ";
  }
  return str(bar, "epoch ", std::min((done - 1) / steps_per_epoch_ + 1, epochs_), "/", epochs_,
             "  step ", done, "/", total_steps_, "  loss ", format_number(loss, 4), "  ",
             format_count(static_cast<std::int64_t>(static_cast<double>(samples_) / elapsed)),
             " images/s  left ", format_duration(left));
}

void ProgressDisplay::say(std::string const& line) {
  if (style_ == ProgressStyle::none) return;
  clear();
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

void ProgressDisplay::clear() {
  if (!bar_visible_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  bar_visible_ = false;
}

}  // namespace stratagem
