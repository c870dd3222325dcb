#include <gtest/gtest.h>

#include "base/text.hpp"
#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

void expect_equal_to_emulator(Training const& training) {
  auto const& ddp = std::get<DdpConfig>(training.strategy);
  SerialConfig const serial{.micro_batches = ddp.micro_batches, .compression = ddp.compression};
  auto expected = world().rank() == 0 ? emulated(training, world().size(), serial) : std::string();
  world().broadcast(expected, 0);
  expect_result(training, expected, Replicas::everywhere);
}

class Compressed : public testing::TestWithParam<Code> {};

TEST_P(Compressed, EqualsTheEmulatorBitForBit) {
  for (auto const rounding : {Rounding::nearest, Rounding::stochastic})
    for (bool const feedback : {false, true})
      for (auto const& [model, bucket_mb] :
           {std::pair("lenet", 0.5), std::pair("tiny_residual", kib),
            std::pair("tiny_odd", 25.0)}) {
        SCOPED_TRACE(str(model, feedback ? ", feedback" : "",
                         rounding == Rounding::nearest ? "" : ", stochastic"));
        expect_equal_to_emulator(
            {.model = model,
             .strategy =
                 DdpConfig{.bucket_mb = bucket_mb, .compression = {GetParam(), rounding, feedback}},
             .steps = 8});
      }
}

INSTANTIATE_TEST_SUITE_P(Codes, Compressed,
                         testing::Values(Code::bf16, Code::fp16, Code::int8, Code::int4,
                                         Code::natural, Code::ternary, Code::sign),
                         [](auto const& info) {
                           return std::string(code_names[static_cast<std::size_t>(info.param)]);
                         });

TEST(Compressed, EqualsTheEmulatorHoweverGradientsAreMade) {
  Compression const code{Code::int8, Rounding::stochastic, true};
  for (auto const& ddp : {DdpConfig{.overlap = false, .compression = code},
                          DdpConfig{.bucket_mb = 4 * kib, .micro_batches = 3, .compression = code}})
    expect_equal_to_emulator({.model = "tiny_residual", .strategy = ddp});
  DdpConfig const ddp{.bucket_mb = 4 * kib, .compression = code};
  expect_equal_to_emulator({.model = "tiny_residual",
                            .strategy = ddp,
                            .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}, .clip_norm = 0.5}});
  expect_equal_to_emulator(
      {.model = "tiny_gpt", .strategy = ddp, .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}}});
  expect_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = ddp,
       .precision = {.compute = Precision::bf16, .loss_scale = LossScale::none}});
}

/// The comparison can fail: every choice changes the numbers.
TEST(Compressed, ChoicesChangeTheNumbers) {
  if (world().size() > 1) return;
  std::vector<std::string> found;
  for (Compression const& code :
       {Compression{}, Compression{Code::int8}, Compression{Code::int8, Rounding::stochastic},
        Compression{Code::int8, Rounding::nearest, true}, Compression{Code::int4}})
    found.push_back(emulated({.model = "tiny_residual"}, 2, {.compression = code}));
  for (std::size_t a = 0; a < found.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(found[a], found[b]) << a << " " << b;
}

}  // namespace
}  // namespace stratagem::test
