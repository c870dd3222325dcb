#include <optional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/factory.hpp"
#include "conformance/expected.hpp"
#include "support/faulty_communicator.hpp"

namespace stratagem::test {
namespace {

constexpr double kib = 1.0 / 1024;

/// What a training ends with in which rank 1 makes a mistake.
std::optional<Error> end_of(Training const& training, Fault fault, int nth) {
  std::optional<Error> end;
  try {
    auto const all = make_world({.timeout_s = 20}, discover_process(world()), world(), nullptr);
    FaultyCommunicator faulty(all->all(), fault, world().rank() == 1 ? nth : -1);
    static_cast<void>(train(training, faulty));
  } catch (Error const& error) {
    end = error;
  }
  world().barrier();
  return end;
}

/// The step in which it happens is never finished, on any rank.
void expect_mismatch(Training const& training, Fault fault, int nth) {
  auto const end = end_of(training, fault, nth);
  ASSERT_TRUE(end.has_value()) << "nobody noticed";
  EXPECT_EQ(end->code(), ExitCode::mismatch) << end->what();
  std::string const text = end->what();
  EXPECT_NE(text.find("on rank 1"), std::string::npos) << text;
  EXPECT_NE(text.find(" Float"), std::string::npos) << text;
}

/// Buckets of all sizes, some of them equal; more per step than are looked at.
TEST(Faults, DdpNoticesACollectiveThatDiffers) {
  if (world().size() < 2) return;
  Training const training{
      .model = "tiny_residual", .strategy = DdpConfig{.bucket_mb = kib}, .steps = 4};
  for (auto const fault : {Fault::skip, Fault::other_type, Fault::fewer})
    for (int const nth : {0, 1, 2, 7}) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << ", at " << nth);
      expect_mismatch(training, fault, nth);
    }
}

TEST(Faults, FsdpNoticesACollectiveThatDiffers) {
  if (world().size() < 2) return;
  for (auto const shard : {Shard::full, Shard::optimizer}) {
    Training const training{.model = "tiny_residual",
                            .strategy = FsdpConfig{.shard = shard, .unit_mb = kib},
                            .steps = 4};
    for (auto const fault : {Fault::skip, Fault::other_type, Fault::fewer})
      for (int const nth : {0, 1, 2, 7}) {
        SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << ", at " << nth);
        expect_mismatch(training, fault, nth);
      }
  }
}

TEST(Faults, WithoutAFaultNothingIsFound) {
  Training const training{.model = "tiny_residual", .strategy = DdpConfig{}, .steps = 4};
  EXPECT_FALSE(end_of(training, Fault::skip, -1).has_value());
}

}  // namespace
}  // namespace stratagem::test
