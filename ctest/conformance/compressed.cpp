#include <gtest/gtest.h>

#include "base/text.hpp"
#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

class Compressed : public testing::TestWithParam<Code> {};

TEST_P(Compressed, EqualsTheEmulatorBitForBit) {
  for (auto const rounding : {Rounding::nearest, Rounding::stochastic})
    for (bool const feedback : {false, true})
      for (auto const& [model, bucket_mb] :
           {std::pair("lenet", 0.5), std::pair("tiny_residual", kib),
            std::pair("tiny_odd", 25.0)}) {
        SCOPED_TRACE(str(model, feedback ? ", feedback" : "",
                         rounding == Rounding::nearest ? "" : ", stochastic"));
        expect_coded_equal_to_emulator(
            {.model = model,
             .strategy =
                 DdpConfig{.bucket_mb = bucket_mb, .compression = {GetParam(), rounding, feedback}},
             .steps = 8});
      }
}

TEST_P(Compressed, ShardsEqualTheEmulatorBitForBit) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (auto const& [model, feedback] :
         {std::pair("tiny_residual", false), std::pair("tiny_odd", true)}) {
      SCOPED_TRACE(str(model, ", shard ", static_cast<int>(shard)));
      expect_shards_equal_to_emulator(
          {.model = model,
           .strategy = FsdpConfig{.shard = shard,
                                  .compression = {GetParam(), Rounding::stochastic, feedback}},
           .steps = 5});
    }
}

INSTANTIATE_TEST_SUITE_P(Codes, Compressed,
                         testing::Values(Code::bf16, Code::fp16, Code::int8, Code::int4,
                                         Code::natural, Code::ternary, Code::sign),
                         [](auto const& info) { return std::string(name_of(info.param)); });

TEST(Compressed, EqualsTheEmulatorHoweverGradientsAreMade) {
  Compression const code{Code::int8, Rounding::stochastic, true};
  for (auto const& ddp : {DdpConfig{.overlap = false, .compression = code},
                          DdpConfig{.bucket_mb = 4 * kib, .micro_batches = 3, .compression = code}})
    expect_coded_equal_to_emulator({.model = "tiny_residual", .strategy = ddp});
  DdpConfig const ddp{.bucket_mb = 4 * kib, .compression = code};
  expect_coded_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = ddp,
       .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}, .clip_norm = 0.5}});
  expect_coded_equal_to_emulator(
      {.model = "tiny_gpt", .strategy = ddp, .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}}});
  expect_coded_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = ddp,
       .precision = {.compute = Precision::bf16, .loss_scale = LossScale::none}});
}

TEST(Compressed, ShardsEqualTheEmulatorHoweverGradientsAreMade) {
  Compression const code{Code::sign, Rounding::nearest, true};
  for (auto const& fsdp :
       {FsdpConfig{.overlap = false, .compression = code},
        FsdpConfig{.prefetch = 2, .keep_units = 1, .compression = code},
        FsdpConfig{.accumulate = Accumulate::unsharded, .micro_batches = 3, .compression = code},
        FsdpConfig{.shard = Shard::optimizer, .micro_batches = 2, .compression = code}})
    expect_shards_equal_to_emulator({.model = "tiny_residual", .strategy = fsdp});
  FsdpConfig const fsdp{.compression = code};
  expect_shards_equal_to_emulator({.model = "lenet", .strategy = fsdp});
  expect_shards_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = fsdp,
       .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}, .clip_norm = 0.5}});
  expect_shards_equal_to_emulator(
      {.model = "tiny_gpt", .strategy = fsdp, .optimizer = {.lr = 1e-3, .rule = AdamwConfig{}}});
  expect_shards_equal_to_emulator(
      {.model = "tiny_residual",
       .strategy = fsdp,
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
  found.push_back(emulated({.model = "tiny_residual"}, 2,
                           {.compression = {Code::int8}, .compressed_sums = false}));
  for (auto const code : {Code::bf16, Code::int8})
    found.push_back(emulated({.model = "tiny_residual"}, 2, {.parameter_compression = code}));
  for (std::size_t a = 0; a < found.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(found[a], found[b]) << a << " " << b;
}

}  // namespace
}  // namespace stratagem::test
