#include "strategy/state/replicas.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/state/device_hash.hpp"

namespace stratagem {
namespace {

NamedTensors two_tensors() {
  return {{"a", at::arange(100, at::kFloat)}, {"b", at::arange(300'000, at::kFloat)}};
}

TEST(Replicas, OneBitOfAnyTensorCounts) {
  auto const tensors = two_tensors();
  auto const before = ReplicaHashes(tensors);
  EXPECT_EQ(ReplicaHashes(two_tensors()).total(), before.total());
  auto* const last = static_cast<std::byte*>(tensors[1].second.data_ptr()) + 4 * 300'000 - 1;
  *last ^= std::byte{128};
  auto const after = ReplicaHashes(tensors);
  EXPECT_NE(after.total(), before.total());
  EXPECT_EQ(divergence(std::vector{before.text(), after.text(), before.text()}), "b on rank 1");
}

TEST(Replicas, StridesDoNotMatterButMemoryDoes) {
  auto const tensor = at::arange(240, at::kFloat).view({2, 3, 4, 10});
  auto const last = tensor.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(ReplicaHashes({{"a", tensor}}).total(),
            ReplicaHashes({{"a", tensor.flatten()}}).total());
  EXPECT_NE(ReplicaHashes({{"a", tensor}}).total(), ReplicaHashes({{"a", last}}).total());
}

TEST(Replicas, ADeviceSeesEveryBitAndTheirOrder) {
  for (auto const type : {at::kDouble, at::kFloat, at::kBFloat16, at::kByte}) {
    auto const tensor = at::arange(9, at::kFloat).to(type);
    auto const before = device_hash(tensor);
    EXPECT_EQ(device_hash(tensor.clone()), before);
    EXPECT_NE(device_hash(tensor.flip(0)), before);
    auto* const bytes = static_cast<unsigned char*>(tensor.data_ptr());
    for (std::int64_t bit = 0; bit < 8 * bytes_of(tensor); ++bit) {
      bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      EXPECT_NE(device_hash(tensor), before) << toString(type) << ", bit " << bit;
      bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    }
  }
}

TEST(Replicas, ADeviceSeesAViewsOwnMemory) {
  auto const flat = at::arange(1000, at::kFloat);
  auto const view = flat.narrow(0, 100, 240).view({2, 10, 3, 4}).permute({0, 3, 1, 2});
  EXPECT_EQ(device_hash(view), device_hash(flat.narrow(0, 100, 240).clone()));
  EXPECT_EQ(device_hash(at::empty({0}, at::kFloat)), 0U);
}

TEST(Replicas, ADeviceHashesLargeTensorsPieceByPiece) {
  auto const large = at::arange(5'000'000, at::kInt);  // more than a piece
  auto const before = device_hash(large);
  large[4'999'999].fill_(1);
  EXPECT_NE(device_hash(large), before);
}

TEST(Replicas, TheMinorityIsNamed) {
  std::string const good = "a 0\nb 1", bad = "a 0\nb 2", worse = "a 3\nb 3";
  EXPECT_EQ(divergence(std::vector{good, good, good}), std::nullopt);
  EXPECT_EQ(divergence(std::vector<std::string>{"", good, ""}), std::nullopt)
      << "nobody to differ from";
  EXPECT_EQ(divergence(std::vector{good, good, bad, good}), "b on rank 2");
  EXPECT_EQ(divergence(std::vector{good, worse, bad, good, good}), "a on rank 1, b on ranks 1, 2");
  EXPECT_EQ(divergence(std::vector{good, bad}), "b between ranks 0, 1");
  EXPECT_EQ(divergence(std::vector<std::string>{bad, "", good, good}), "b on rank 0");
  EXPECT_EQ(divergence(std::vector<std::string>{
                "a 0\nb 0\nc 0\nd 0\ne 0", "a 1\nb 1\nc 1\nd 1\ne 1", "a 0\nb 0\nc 0\nd 0\ne 0"}),
            "a on rank 1, b on rank 1, c on rank 1 and 2 more tensors");
}

TEST(Replicas, DifferenceEndsAllRanksAlike) {
  run_ranks(3, 1, [](Communicator& communicator) {
    auto tensors = two_tensors();
    EXPECT_NO_THROW(require_equal_replicas(communicator, ReplicaHashes(tensors), 8));
    if (communicator.rank() == 1) tensors[0].second[7].fill_(-1);
    try {
      require_equal_replicas(communicator, ReplicaHashes(tensors), 9);
      FAIL() << "no error on rank " << communicator.rank();
    } catch (AgreedError const& error) {
      EXPECT_EQ(error.code(), ExitCode::diverged);
      EXPECT_NE(std::string(error.what()).find("replicas differ at step 9: a on rank 1"),
                std::string::npos)
          << error.what();
    }
  });
}

StepStatus::Agreed result_of(at::Tensor const& sum, Batch const& batch, int ranks) {
  StepStatus record(sum);
  record.fetch_sum();
  return record.result(batch, {.ranks = ranks, .reporters = ranks});
}

/// The sums of what these ranks put into their records.
bool alike(std::vector<std::uint64_t> const& fingerprints, at::ScalarType type) {
  auto const sum = at::zeros({status_room}, type);
  StepStatus record(at::zeros({status_room}, type));
  for (auto const fingerprint : fingerprints) {
    record.begin({});
    record.seal(fingerprint);
    sum.add_(record.memory());
  }
  Batch const batch{.labels = at::zeros({1}, at::kLong)};
  return result_of(sum, batch, static_cast<int>(fingerprints.size())).alike;
}

TEST(Replicas, SumsTellWhetherFingerprintsAreEqual) {
  for (auto const type : {at::kFloat, at::kDouble}) {
    EXPECT_TRUE(alike({0xF0123456, 0xF0123456, 0xF0123456}, type));
    for (int bit = 0; bit < 32; ++bit)
      EXPECT_FALSE(alike({0, 0, std::uint64_t{1} << bit}, type)) << bit;
    EXPECT_FALSE(alike({0x1, 0x2, 0x3}, type)) << "the mean is that of rank 1";
    EXPECT_TRUE(alike(std::vector<std::uint64_t>(5000, 0xFFFFFFFF), type));
    auto many = std::vector<std::uint64_t>(5000, 0xFFFFFFFF);
    many.back() = 0xFFFFFFFE;
    EXPECT_FALSE(alike(many, type));
  }
}

TEST(Replicas, ARecordThatIsGarbageIsNotAlike) {
  Batch const batch{.labels = at::zeros({1}, at::kLong)};
  EXPECT_FALSE(result_of(at::full({status_room}, 0.125), batch, 2).alike);
  EXPECT_FALSE(result_of(at::full({status_room}, NAN), batch, 2).alike);
}

}  // namespace
}  // namespace stratagem
