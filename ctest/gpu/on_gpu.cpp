#include <cmath>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "gpu/branch.hpp"
#include "gpu/graph.hpp"
#include "gpu/keep_mask.hpp"
#include "gpu/landing.hpp"
#include "gpu/marks.hpp"
#include "gpu/memory.hpp"
#include "gpu/pinned_pool.hpp"
#include "gpu/stream.hpp"
#include "gpu/telemetry.hpp"

// What the other tests of this folder ask of the CPU, of a real GPU.
namespace stratagem::gpu {
namespace {

constexpr Device device{DeviceKind::cuda, 0};

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (auto const found = availability(); found.count == 0) GTEST_SKIP() << "needs a GPU";
    select(device);
  }

  /// Without a generator, which work that could not be kept leaves unusable.
  static at::Tensor random(std::int64_t edge) {
    auto const options = at::TensorOptions().device(device.torch()).dtype(at::kFloat);
    return at::arange(edge * edge, options).sin_().view({edge, edge});
  }
  /// Enqueues what keeps the compute stream busy for a while.
  static at::Tensor work() {
    auto product = random(4096);
    for (int i = 0; i < 20; ++i) product = at::mm(product, product).tanh_();
    return product;
  }
};

TEST_F(OnGpu, CopiesWaitForWhatTheComputeStreamMakes) {
  auto const made = work();
  auto const stream = Stream::high_priority(device);
  Event before(device), after(device);
  before.record(Stream::compute(device));
  EXPECT_FALSE(before.done()) << "the host does not wait";
  before.wait_on_stream(stream);
  PinnedPool pool(device);
  auto const buffer = pool.take(made.nbytes());
  copy_async(buffer->data(), made.data_ptr(), buffer->size(), stream);
  after.record(stream);
  after.wait_on_host();
  EXPECT_TRUE(before.done() && after.done());
  auto const copy = at::from_blob(buffer->data(), made.sizes(), at::kFloat);
  EXPECT_TRUE(at::equal(copy, made.cpu()));
}

TEST_F(OnGpu, TheComputeStreamCopiesInItsOrder) {
  auto const stream = Stream::compute(device);
  PinnedBuffer const buffer(device, work().nbytes());
  auto const made = work();
  copy_async(buffer.data(), made.data_ptr(), buffer.size(), stream);
  Event copied(device);
  copied.record(stream);
  EXPECT_FALSE(copied.done()) << "the host does not wait";
  made.zero_();
  copied.wait_on_host();
  EXPECT_GT(at::from_blob(buffer.data(), made.sizes(), at::kFloat).abs().max().item<float>(), 0);
}

TEST_F(OnGpu, TheComputeStreamWaitsForACopy) {
  auto const stream = Stream::high_priority(device);
  PinnedBuffer const buffer(device, 1 << 26);
  auto const source = at::from_blob(buffer.data(), {1 << 24}, at::kFloat);
  auto const target = at::zeros_like(source, at::TensorOptions().device(device.torch()));
  source.fill_(3);
  Event zeroed(device), copied(device);
  zeroed.record(Stream::compute(device));
  zeroed.wait_on_stream(stream);
  copy_async(target.data_ptr(), buffer.data(), buffer.size(), stream);
  copied.record(stream);
  copied.wait_on_stream(Stream::compute(device));
  EXPECT_EQ(target.add(1).min().item<float>(), 4);
}

TEST_F(OnGpu, MarksAreTimesOfTheDevice) {
  static_cast<void>(work());  // makes the libraries' handles
  synchronize(device);
  Marks marks(device, 2);
  auto const before = monotonic_ns();
  marks.add();
  auto const made = work();
  marks.add();
  auto const submitted = monotonic_ns();
  marks.resolve();
  auto const took = marks.ns(1) - marks.ns(0);
  EXPECT_LE(before, marks.ns(0));
  EXPECT_GT(took, 0);
  EXPECT_LE(took, monotonic_ns() - before);
  EXPECT_GT(marks.ns(1), submitted) << "the device was still at work";
}

TEST_F(OnGpu, MarksBeginNoEarlierThanTold) {
  Marks marks(device, 2);
  marks.add();
  marks.add();
  auto const later = monotonic_ns() + 1'000'000'000;
  marks.resolve(later);
  EXPECT_EQ(marks.ns(0), later);
  EXPECT_GE(marks.ns(1), later);
}

TEST_F(OnGpu, LastingMemoryIsBookedAndTheRestIsActivations) {
  auto const before = live_memory(device);
  at::Tensor parameters;
  {
    MemoryScope const scope(MemoryCategory::parameters, device);
    parameters = random(512);
  }
  auto const held = live_memory(device);
  EXPECT_EQ(held[MemoryCategory::parameters] - before[MemoryCategory::parameters], 1 << 20);
  reset_peak_memory(device);
  { auto const activations = random(1024); }
  auto const peak = peak_memory(device);
  EXPECT_EQ(peak[MemoryCategory::activations] - held[MemoryCategory::activations], 4 << 20);
  EXPECT_EQ(live_memory(device).total(), held.total());
  EXPECT_GE(reserved_memory(device), static_cast<double>(peak.total()));
  EXPECT_GT(total_memory(device), peak.total());
}

TEST_F(OnGpu, TelemetryTellsOfTheWholeDevice) {
  auto const telemetry = make_telemetry(device);
  auto const begin = telemetry->sample();
  for (auto const end = monotonic_ns() + 500'000'000; monotonic_ns() < end;) {
    static_cast<void>(work());
    synchronize(device);
  }
  auto const end = telemetry->sample();
  EXPECT_GT(end.energy, begin.energy);
  EXPECT_GT(end.power, 1);
  EXPECT_GT(end.clock, 100);
  EXPECT_GT(end.memory_used, 1 << 20);
  EXPECT_GT(end.utilization, 0);
  EXPECT_LE(end.utilization, 1);
}

TEST_F(OnGpu, MasksAreThoseOfTheHost) {
  CounterRandom const random(7, "dropout/a");
  for (auto const& [samples, count] : {std::pair<std::int64_t, std::int64_t>{5, 1003}, {130, 1}}) {
    auto const mask = at::zeros({samples, count}, at::TensorOptions().device(device.torch()));
    fill({random, std::uint64_t{9} << 32 | 40, samples, count, 0.3}, mask.data_ptr<float>(),
         device);
    auto const made = mask.cpu();
    auto const step = at::full({1}, std::int64_t{9} << 32,
                               at::TensorOptions().device(device.torch()).dtype(at::kLong));
    auto const* const later = reinterpret_cast<std::uint64_t const*>(step.data_ptr<std::int64_t>());
    fill({random, 40, samples, count, 0.3, later}, mask.data_ptr<float>(), device);
    EXPECT_TRUE(at::equal(mask.cpu(), made)) << "of a step that the device knows";
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (std::int64_t i = 0; i < count; ++i) {
        auto const word =
            random.word(static_cast<std::uint64_t>(i),
                        std::uint64_t{9} << 32 | static_cast<std::uint64_t>(40 + sample));
        ASSERT_EQ(made[sample][i].item<float>(), to_unit_float(word) >= 0.3 ? 1 : 0)
            << "element " << i << " of sample " << sample;
      }
  }
}

TEST_F(OnGpu, LandsManyTensorsOfAnyType) {
  struct Pair {
    at::Tensor to, from;
  };
  auto const element_of = [](at::ScalarType type) {
    return type == at::kFloat ? Element::fp32 : type == at::kHalf ? Element::fp16 : Element::bf16;
  };
  auto const options = at::TensorOptions().device(device.torch());
  for (bool const adds : {false, true}) {
    std::vector<Pair> pairs;
    std::vector<at::Tensor> expected;
    std::vector<Landing> landings;
    for (int i = 0; i < 200; ++i)  // more than one kernel takes
      for (auto const to : {at::kFloat, at::kBFloat16, at::kHalf})
        for (auto const from : {at::kFloat, at::kBFloat16, at::kHalf}) {
          std::int64_t const count = i % 7 == 0 ? 0 : i % 5 == 0 ? 40'000 + i : 1 + 13 * i;
          auto const& [place, value] =
              pairs.emplace_back(Pair{at::randn({count}).to(options.dtype(to)),
                                      at::randn({count}).to(options.dtype(from))});
          expected.push_back(adds ? (place.to(at::kFloat) + value.to(at::kFloat)).to(to)
                                  : value.to(to));
          landings.push_back(
              {place.data_ptr(), value.data_ptr(), count, element_of(to), element_of(from), adds});
        }
    land(landings, device);
    for (std::size_t i = 0; i < pairs.size(); ++i)
      ASSERT_TRUE(at::equal(pairs[i].to, expected[i])) << "pair " << i << (adds ? " added" : "");
  }
}

TEST_F(OnGpu, AGraphRunsAgainOnWhatLiesInItsMemory) {
  auto const options = at::TensorOptions().device(device.torch());
  auto const input = at::ones({1000}, options), output = at::zeros({1000}, options);
  for (int i = 0; i < 2; ++i) output.copy_(input.mul(2).add_(1));
  output.zero_();
  Marks marks(device, 8);
  marks.add();
  int mark = -1;
  Graph const graph(device, [&] {
    mark = marks.add();
    output.copy_(input.mul(2).add_(1));
  });
  EXPECT_EQ(output.abs().max().item<float>(), 0) << "nothing runs while it is kept";
  EXPECT_GE(graph.nodes(), 4);
  for (float const value : {3.0F, 5.0F}) {
    input.fill_(value);
    graph.launch({}, {});
    EXPECT_EQ(output.min().item<float>(), 2 * value + 1);
  }
  int const last = marks.add();
  marks.resolve();
  EXPECT_LE(marks.ns(0), marks.ns(mark));
  EXPECT_LE(marks.ns(mark), marks.ns(last));

  Marks others(device, 8);
  others.add();
  std::vector<void*> const kept{marks.handle(mark)}, instead{others.handle(others.expect())};
  static_cast<void>(work());
  graph.launch(kept, instead);
  others.add();
  others.resolve();
  EXPECT_GT(others.ns(1), others.ns(0));
  EXPECT_LE(others.ns(1), others.ns(2));
}

TEST_F(OnGpu, ABranchOfAGraphComputesWhatItsPlaceInTheOrderWould) {
  EXPECT_FALSE(Branch::possible(device));
  auto const input = random(512), output = at::zeros_like(input), apart = at::zeros_like(input);
  Branch branch;
  auto const body = [&] {
    auto const operand = input.add(1);
    branch.run(device, {operand}, [&] { apart.copy_(at::mm(operand, operand)); });
    output.copy_(at::mm(input, operand));
    branch.join();
    output.sub_(apart);
  };
  body();
  auto const expected = output.clone();
  output.zero_();
  bool possible = false;
  Graph const graph(device, [&] {
    possible = Branch::possible(device);
    body();
  });
  EXPECT_TRUE(possible);
  for (int i = 0; i < 3; ++i) {
    apart.zero_();
    graph.launch({}, {});
    EXPECT_TRUE(at::equal(output, expected));
  }
}

TEST_F(OnGpu, WorkThatWaitsForTheDeviceCannotBeKept) {
  auto const values = at::ones({10}, at::TensorOptions().device(device.torch()));
  try {
    Graph const graph(device, [&] { static_cast<void>(values.sum().item<float>()); });
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    EXPECT_NE(std::string(error.what()).find("run.graph: off"), std::string::npos);
  }
  EXPECT_EQ(values.sum().item<float>(), 10) << "the device can be used as before";
}

TEST_F(OnGpu, ASideStreamDoesNotWaitForTheComputeStream) {
  SideStream const aside(device);
  auto const pinned = at::full({1 << 20}, 7.0F, at::TensorOptions().pinned_memory(true));
  at::Tensor copy;
  aside.run([&] { copy = pinned.to(device.torch(), at::kFloat, /*non_blocking=*/true); });
  static_cast<void>(work());
  Event busy(device), copied(device);
  busy.record(Stream::compute(device));
  aside.run([&] {
    copy = pinned.to(device.torch(), at::kFloat, /*non_blocking=*/true);
    copied.record(Stream::compute(device));
  });
  aside.hand_over(copy);
  copied.wait_on_host();
  EXPECT_FALSE(busy.done());
  EXPECT_EQ(copy.min().item<float>(), 7);
}

TEST_F(OnGpu, HasANameAndAnAddress) {
  EXPECT_FALSE(device_name(device).empty());
  EXPECT_NE(device_address(device).find(':'), std::string::npos);
}

}  // namespace
}  // namespace stratagem::gpu
