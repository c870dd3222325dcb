#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "trace/recorder.hpp"

namespace stratagem::trace {
namespace {

constexpr gpu::Device device{gpu::DeviceKind::cuda, 0};

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (auto const found = gpu::availability(); found.count == 0) GTEST_SKIP() << "needs a GPU";
    gpu::select(device);
  }

  /// A step that keeps the device busy for some milliseconds, and the host for much less.
  static void step(Recorder& recorder, std::int64_t number) {
    recorder.begin_step(number, 0);
    recorder.enter(Phase::forward);
    auto product = at::ones({4096, 4096}, at::TensorOptions().device(device.torch()));
    for (int i = 0; i < 20; ++i) product = at::mm(product, product).tanh_();
    recorder.end_step();
  }
};

TEST_F(OnGpu, TheHostIsAStepAhead) {
  constexpr std::int64_t steps = 8;
  Recorder recorder(device, 0);
  step(recorder, 0);  // makes the libraries' handles
  recorder.settle();
  auto const began = monotonic_ns();
  std::vector<StepRecord> records;
  for (std::int64_t number = 1; number < steps; ++number) {
    step(recorder, number);
    EXPECT_EQ(recorder.last_step().step, number - 1) << "the host does not wait for this one";
    records.push_back(recorder.last_step());
  }
  recorder.settle();
  records.push_back(recorder.last_step());
  EXPECT_EQ(records.back().step, steps - 1);
  for (std::size_t i = 1; i < records.size(); ++i) {
    EXPECT_GT(records[i].duration, 0);
    EXPECT_GE(records[i].t_begin, records[i - 1].t_begin + records[i - 1].duration);
  }
  EXPECT_GE(records[1].t_begin, began);
  EXPECT_LE(records.back().t_begin + records.back().duration, monotonic_ns());
}

}  // namespace
}  // namespace stratagem::trace
