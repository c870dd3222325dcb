#include "strategy/state/counters.hpp"

#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"

namespace stratagem {
namespace {

TEST(Counters, WhatAllRanksHaveIsOne) {
  run_ranks(3, 1, [](Communicator& communicator) {
    double scale = 512.25, steps = 7;
    State const state{.counters = {{"loss_scale", &scale}, {"loss_scale_good_steps", &steps}}};
    EXPECT_EQ(gather_counters(state, communicator),
              (Counters{{"loss_scale", 512.25}, {"loss_scale_good_steps", 7}}));
  });
}

TEST(Counters, OfWorkersAreNamedAndTheLeastIsEverybodys) {
  run_ranks(3, 1, [](Communicator& communicator) {
    int const worker = communicator.rank() - 1;  // rank 0 serves
    double scale = worker == 0 ? 1024 : 0.1, steps = worker;
    State state;
    if (worker >= 0)
      state = {.counters = {{"loss_scale", &scale}, {"loss_scale_good_steps", &steps}},
               .counters_of = worker};
    auto const counters = gather_counters(state, communicator);
    EXPECT_EQ(counters, (Counters{{"loss_scale/0", 1024},
                                  {"loss_scale/1", 0.1},
                                  {"loss_scale_good_steps/0", 0},
                                  {"loss_scale_good_steps/1", 1},
                                  {"loss_scale", 0.1},
                                  {"loss_scale_good_steps", 1}}));
    scale = steps = -1;
    load_counters(state, counters);
    if (worker < 0) return;
    EXPECT_EQ(scale, worker == 0 ? 1024 : 0.1);
    EXPECT_EQ(steps, worker);
  });
}

TEST(Counters, AWorkerWithoutItsOwnTakesWhatAllShare) {
  double scale = 1;
  State const state{.counters = {{"loss_scale", &scale}}, .counters_of = 4};
  load_counters(state, {{"loss_scale", 64}, {"loss_scale/1", 32}});
  EXPECT_EQ(scale, 64);
}

}  // namespace
}  // namespace stratagem
