#include <gtest/gtest.h>

#include "base/text.hpp"
#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

/// Codes that write no blocks.
struct NamedCode {
  char const* name;
  Compression code;
};

NamedCode const codes[]{
    {"top_k", {.code = Code::top_k, .ratio = 0.05}},
    {"top_k_feedback", {.code = Code::top_k, .error_feedback = true, .ratio = 0.05}},
    {"top_k_all", {.code = Code::top_k, .error_feedback = true, .ratio = 1}},
    {"top_k_momentum",
     {.code = Code::top_k, .error_feedback = true, .ratio = 0.05, .momentum_correction = true}},
    {"random_k", {.code = Code::random_k, .ratio = 0.05}},
    {"random_k_feedback", {.code = Code::random_k, .error_feedback = true, .ratio = 0.05}},
    {"random_k_momentum",
     {.code = Code::random_k, .error_feedback = true, .ratio = 0.05, .momentum_correction = true}},
    {"low_rank_1", {.code = Code::low_rank, .error_feedback = true, .matrix_rank = 1}},
    {"low_rank_4", {.code = Code::low_rank, .error_feedback = true, .matrix_rank = 4}}};

class OtherCodes : public testing::TestWithParam<NamedCode> {};

TEST_P(OtherCodes, EqualTheEmulatorBitForBit) {
  for (auto const& [model, bucket_mb] :
       {std::pair("lenet", 0.5), std::pair("tiny_residual", kib), std::pair("tiny_odd", 25.0)}) {
    SCOPED_TRACE(model);
    expect_coded_equal_to_emulator(
        {.model = model,
         .strategy = DdpConfig{.bucket_mb = bucket_mb, .compression = GetParam().code},
         .steps = 4});
  }
}

TEST_P(OtherCodes, EqualTheEmulatorHoweverGradientsAreMade) {
  auto const& code = GetParam().code;
  OptimizerConfig const clipped{.lr = 0.02, .clip_norm = 0.5},
      adamw{.lr = 1e-3, .rule = AdamwConfig{}};
  expect_coded_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy =
           DdpConfig{
               .bucket_mb = 4 * kib, .overlap = false, .micro_batches = 3, .compression = code},
       .optimizer = clipped,
       .precision = {.compute = Precision::bf16, .loss_scale = LossScale::none},
       .steps = 4});
  expect_coded_equal_to_emulator({.model = "tiny_experts",
                                  .strategy = DdpConfig{.bucket_mb = 4 * kib, .compression = code},
                                  .optimizer = code.momentum_correction ? clipped : adamw,
                                  .steps = 4});
}

/// With all elements nothing is lost, and the sum is that of fp32; and the comparison can fail:
/// every choice changes the numbers.
TEST_P(OtherCodes, ChangeTheNumbersUnlessAllElementsAreSent) {
  if (world().size() > 1) return;
  auto const in = [](Compression const& code) {
    return emulated({.model = "tiny_residual", .steps = 5}, 3, {.compression = code});
  };
  auto const own = in(GetParam().code);
  EXPECT_EQ(own == in({}), GetParam().code.ratio == 1);
  auto const& another = codes[std::string(GetParam().name) == codes[0].name ? 1 : 0];
  EXPECT_NE(own, in(another.code)) << another.name;
}

INSTANTIATE_TEST_SUITE_P(Codes, OtherCodes, testing::ValuesIn(codes),
                         [](auto const& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stratagem::test
