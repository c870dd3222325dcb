#include "data/loader.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "data/tiny_dataset.hpp"
#include "h5/error.hpp"
#include "support/scratch.hpp"
#include "trace/rank_trace.hpp"
#include "trace/trace_file.hpp"

namespace stratagem {
namespace {

using test::tiny_dataset;

LoadPlan const plan{
    .seed = 5, .global_batch = 12, .end_step = 10, .augment = Augmentation::standard};

std::vector<Batch> all_batches(Dataset const& dataset, LoadPlan const& wanted) {
  Loader loader(dataset, {}, wanted, nullptr);
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  EXPECT_FALSE(loader.next().has_value());
  return batches;
}

LoadPlan sliced(int rank, int ranks) {
  auto part = plan;
  part.slice = {rank, ranks};
  return part;
}

TEST(Loader, DeliversStepsInOrder) {
  auto const batches =
      all_batches(tiny_dataset(50, 3, 32), plan);  // 4 steps per epoch, 2 left over
  ASSERT_EQ(batches.size(), 10u);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(batches[i].step, static_cast<std::int64_t>(i));
    EXPECT_EQ(batches[i].epoch, static_cast<std::int64_t>(i) / 4);
    EXPECT_EQ(batches[i].size(), 12);
  }
}

TEST(Loader, FollowsTheOrderOfEachEpoch) {
  auto const dataset = tiny_dataset(50, 3, 32);
  for (auto const& batch : all_batches(dataset, plan)) {
    auto const order = epoch_order(plan.seed, batch.epoch, 50);
    for (std::int64_t i = 0; i < 12; ++i)
      EXPECT_EQ(batch.labels[i].item<std::int64_t>(),
                order[static_cast<std::size_t>(batch.step % 4 * 12 + i)] % 10);
  }
}

TEST(Loader, RanksTogetherHoldTheGlobalBatch) {
  auto const dataset = tiny_dataset(50, 3, 32);
  auto const whole = all_batches(dataset, plan);
  for (int ranks : {2, 3, 4}) {
    for (int rank = 0; rank < ranks; ++rank) {
      auto const part = all_batches(dataset, sliced(rank, ranks));
      ASSERT_EQ(part.size(), whole.size());
      for (std::size_t step = 0; step < whole.size(); ++step) {
        auto const first = part[step].first_slot, count = part[step].size();
        EXPECT_EQ(first, rank * 12 / ranks);
        EXPECT_TRUE(at::equal(part[step].inputs, whole[step].inputs.narrow(0, first, count)));
        EXPECT_TRUE(at::equal(part[step].labels, whole[step].labels.narrow(0, first, count)));
      }
    }
  }
}

TEST(Loader, ResumesAtAnyStep) {
  auto const dataset = tiny_dataset(50, 3, 32);
  auto const whole = all_batches(dataset, plan);
  for (std::int64_t first = 0; first <= 10; ++first) {
    auto rest = plan;
    rest.first_step = first;
    auto const batches = all_batches(dataset, rest);
    ASSERT_EQ(batches.size(), static_cast<std::size_t>(10 - first));
    for (auto const& batch : batches)
      EXPECT_TRUE(at::equal(batch.inputs, whole[static_cast<std::size_t>(batch.step)].inputs));
  }
}

TEST(Loader, DeliversWhatIsAskedFor) {
  auto const dataset = tiny_dataset(50, 3, 32);
  auto const whole = all_batches(dataset, plan);
  auto on_demand = plan;
  on_demand.end_step = 0;
  Loader loader(dataset, {}, on_demand, nullptr);
  EXPECT_FALSE(loader.next().has_value());
  for (auto const& [step, rank] : {std::pair{5, 1}, {2, 0}, {5, 0}, {9, 2}})
    loader.ask({step, {rank, 3}});
  for (auto const& [step, rank] : {std::pair{5, 1}, {2, 0}, {5, 0}, {9, 2}}) {
    auto const batch = loader.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->step, step);
    EXPECT_EQ(batch->first_slot, 4 * rank);
    EXPECT_TRUE(at::equal(batch->inputs,
                          whole[static_cast<std::size_t>(step)].inputs.narrow(0, 4 * rank, 4)));
  }
  EXPECT_FALSE(loader.next().has_value());
}

TEST(Loader, RecordsItsWorkWhileASampledStepRuns) {
  h5::initialise_library();
  test::Scratch folder;
  auto const path = folder / "rank-0000.h5";
  auto const dataset = tiny_dataset(50, 3, 32);
  trace::Recorder recorder(gpu::Device{}, 2);
  trace::TraceFile file(path, {}, recorder, {}, 0);
  auto load = [&](std::int64_t first, std::int64_t end) {
    auto part = plan;
    part.first_step = first;
    part.end_step = end;
    Loader loader(dataset, {}, part, &recorder);
    while (loader.next()) {
    }
  };
  recorder.begin_step(1, 0);  // not sampled: every second step is
  load(0, 3);
  recorder.begin_step(2, 0);
  load(4, 6);
  EXPECT_FALSE(file.close(trace::Status::complete, {}).has_value());
  auto const recorded = trace::read_rank_trace(path);
  auto const& spans = recorded.table(trace::spans_table());
  auto const loader_lane = static_cast<std::int64_t>(trace::Lane::loader);
  EXPECT_EQ(spans.integers("step"), (h5::Integers{4, 5}));
  EXPECT_EQ(spans.integers("lane"), (h5::Integers{loader_lane, loader_lane}));
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_LT(spans.integers("t_begin_ns")[i], spans.integers("t_end_ns")[i]);
}

TEST(Loader, StopsAtOnceWhenDropped) {
  auto const dataset = tiny_dataset(5000, 1, 28);
  auto endless = plan;
  endless.end_step = 1'000'000'000;
  auto const begin = monotonic_ns();
  for (int taken = 0; taken < 5; ++taken) {
    Loader loader(dataset, {}, endless, nullptr);
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(loader.next().has_value());
  }
  EXPECT_LT(monotonic_ns() - begin, 5'000'000'000);
}

TEST(Loader, RethrowsWhatItsThreadFailedWith) {
  auto dataset = tiny_dataset(50, 3, 32);
  auto uneven = plan;
  uneven.slice = {0, 5};  // 12 images for 5 ranks
  Loader loader(dataset, {}, uneven, nullptr);
  EXPECT_THROW(loader.next(), std::logic_error);
  EXPECT_THROW(loader.next(), std::logic_error);
}

TEST(Loader, RefusesAnEpochWithoutAStep) {
  EXPECT_THROW(Loader(tiny_dataset(11, 3, 32), {}, plan, nullptr), std::logic_error);
}

}  // namespace
}  // namespace stratagem
