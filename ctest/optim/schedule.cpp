#include "optim/schedule.hpp"

#include <numbers>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

struct Case {
  char const* what;
  OptimizerConfig config;
  std::int64_t step;
  double lr;
};

// 4 workers, 10 steps per epoch, 100 steps in all.
TEST(Schedule, FollowsItsFormulas) {
  using enum ScheduleKind;
  for (auto const& [what, config, step, lr] : {
           Case{"constant", {.lr = 0.1}, 99, 0.1},
           Case{"linear scaling", {.lr = 0.1, .lr_scaling = LrScaling::linear}, 0, 0.4},
           Case{"root scaling", {.lr = 0.1, .lr_scaling = LrScaling::sqrt}, 0, 0.2},
           Case{"first of warm-up", {.lr = 0.1, .warmup_steps = 5}, 0, 0.02},
           Case{"last of warm-up", {.lr = 0.1, .warmup_steps = 5}, 4, 0.1},
           Case{"after warm-up", {.lr = 0.1, .warmup_steps = 5}, 5, 0.1},
           Case{"cosine, begin", {.lr = 0.1, .schedule = cosine}, 0, 0.1},
           Case{"cosine, a quarter",
                {.lr = 0.1, .schedule = cosine},
                25,
                0.05 * (1 + std::numbers::sqrt2 / 2)},
           Case{"cosine, half", {.lr = 0.1, .schedule = cosine}, 50, 0.05},
           Case{"cosine, end", {.lr = 0.1, .schedule = cosine}, 100, 0},
           Case{"cosine, behind the end", {.lr = 0.1, .schedule = cosine}, 150, 0},
           Case{"cosine after warm-up",
                {.lr = 0.1, .schedule = cosine, .warmup_steps = 20},
                60,
                0.05},
           Case{"cosine to an end", {.lr = 0.1, .schedule = cosine, .final_lr = 0.02}, 50, 0.06},
           Case{"cosine over fewer steps",
                {.lr = 0.1, .schedule = cosine, .final_lr = 0.02, .decay_steps = 40},
                60,
                0.02},
           Case{"linear, a quarter", {.lr = 0.1, .schedule = linear, .final_lr = 0.02}, 25, 0.08},
           Case{"linear after warm-up",
                {.lr = 0.1, .schedule = linear, .warmup_steps = 20},
                60,
                0.05},
           Case{"wsd, stable", {.lr = 0.1, .schedule = wsd}, 90, 0.1},
           Case{"wsd, half way down", {.lr = 0.1, .schedule = wsd, .final_lr = 0.02}, 95, 0.06},
           Case{"wsd over more steps", {.lr = 0.1, .schedule = wsd, .decay_steps = 40}, 70, 0.075},
           Case{"an end is scaled, too",
                {.lr = 0.1, .lr_scaling = LrScaling::linear, .schedule = linear, .final_lr = 0.02},
                100,
                0.08},
           Case{"step, before",
                {.lr = 0.1, .schedule = ScheduleKind::step, .step_size = 3},
                29,
                0.1},
           Case{
               "step, once", {.lr = 0.1, .schedule = ScheduleKind::step, .step_size = 3}, 30, 0.01},
           Case{"step, thrice",
                {.lr = 0.1, .schedule = ScheduleKind::step, .step_size = 3, .gamma = 0.5},
                99,
                0.0125},
       })
    EXPECT_NEAR(Schedule(config, 4, 10, 100).lr(step), lr, 1e-15) << what;
}

TEST(Schedule, NeedsNoStepsToBeAsked) {
  OptimizerConfig const config{.lr = 0.1, .schedule = ScheduleKind::cosine};
  EXPECT_EQ(Schedule(config, 1, 0, 0).lr(0), 0.1);
}

}  // namespace
}  // namespace stratagem
