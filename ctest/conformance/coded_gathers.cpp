#include <gtest/gtest.h>

#include "base/text.hpp"
#include "conformance/expected.hpp"

// Parameters that are gathered in a code.

namespace stratagem::test {
namespace {

class CodedGathers : public testing::TestWithParam<Code> {};

TEST_P(CodedGathers, ShardsEqualTheEmulatorBitForBit) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (auto const* model : {"tiny_residual", "tiny_odd", "tiny_gpt"})
      for (auto const compute : {Precision::fp32, Precision::bf16}) {
        SCOPED_TRACE(str(model, ", shard ", static_cast<int>(shard), ", compute ",
                         static_cast<int>(compute)));
        expect_shards_equal_to_emulator(
            {.model = model,
             .strategy = FsdpConfig{.shard = shard, .parameter_compression = GetParam()},
             .precision = {.compute = compute, .loss_scale = LossScale::none},
             .steps = 4});
      }
}

INSTANTIATE_TEST_SUITE_P(Codes, CodedGathers,
                         testing::Values(Code::bf16, Code::fp16, Code::int8, Code::int4),
                         [](auto const& info) { return std::string(name_of(info.param)); });

TEST(CodedGathers, ShardsEqualTheEmulatorHoweverTheyAreGathered) {
  Compression const sign{Code::sign, Rounding::nearest, true};
  for (auto const& fsdp :
       {FsdpConfig{.overlap = false, .parameter_compression = Code::int8},
        FsdpConfig{.prefetch = 2, .keep_units = 1, .parameter_compression = Code::int8},
        FsdpConfig{.reshard_after_forward = false, .parameter_compression = Code::int8},
        FsdpConfig{.compression = sign, .parameter_compression = Code::int8},
        FsdpConfig{.accumulate = Accumulate::unsharded,
        .micro_batches = 3,
        .parameter_compression = Code::int4}})
    expect_shards_equal_to_emulator({.model = "tiny_residual", .strategy = fsdp});
  FsdpConfig const fsdp{.parameter_compression = Code::int8};
  expect_shards_equal_to_emulator({.model = "lenet", .strategy = fsdp});
  expect_shards_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = fsdp,
       .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}, .clip_norm = 0.5}});
}

}  // namespace
}  // namespace stratagem::test
