#include "comm/collective_log.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace stratagem {
namespace {

using Kind = CollectiveCall::Kind;

constexpr CollectiveCall bucket{Kind::all_reduce, at::kFloat, 4096, 32};

TEST(CollectiveLog, EveryFieldAndTheOrderMakeTheFingerprint) {
  auto const of = [](std::initializer_list<CollectiveCall> calls) {
    CollectiveLog log;
    for (auto const& call : calls) log.add(call);
    return log.fingerprint();
  };
  EXPECT_EQ(of({bucket, {Kind::barrier}}), of({bucket, {Kind::barrier}}));
  EXPECT_NE(of({bucket, {Kind::barrier}}), of({{Kind::barrier}, bucket}));
  EXPECT_NE(of({bucket}), of({bucket, bucket}));
  auto other = bucket;
  other.kind = Kind::all_gather;
  EXPECT_NE(of({bucket}), of({other}));
  other = bucket;
  other.type = at::kDouble;
  EXPECT_NE(of({bucket}), of({other}));
  other = bucket;
  other.numel = 4095;
  EXPECT_NE(of({bucket}), of({other}));
  other = bucket;
  other.offset = 0;
  EXPECT_NE(of({bucket}), of({other}));
  other = bucket;
  other.root = 1;
  EXPECT_NE(of({bucket}), of({other}));
}

TEST(CollectiveLog, KeepsTheLastByName) {
  CollectiveLog log;
  for (int i = 0; i < 40; ++i) log.add(bucket);
  log.add({Kind::broadcast, at::kLong, 3, 0, 2});
  auto const text = log.text();
  EXPECT_TRUE(text.starts_with("9 all_reduce of 4096 Float at 32\n10 ")) << text;
  EXPECT_TRUE(
      text.ends_with("\n39 all_reduce of 4096 Float at 32\n40 broadcast of 3 Long from rank 2"))
      << text;
}

TEST(CollectiveLog, TheFirstDifferenceIsNamedWithItsRanks) {
  std::vector<std::string> const logs{"4 barrier\n5 all_reduce of 8 Float\n6 barrier",
                                      "5 barrier\n6 all_reduce of 8 Float", "",
                                      "3 barrier\n4 barrier\n5 all_reduce of 8 Float"};
  EXPECT_EQ(first_difference(logs),
            "collective 5 is all_reduce of 8 Float on ranks 0, 3 and barrier on rank 1");
}

TEST(CollectiveLog, ALateRankDoesNotDiffer) {
  EXPECT_EQ(first_difference(std::vector<std::string>{"0 barrier", "0 barrier\n1 barrier", ""}),
            std::nullopt);
}

TEST(CollectiveLog, ACallCostsNextToNothing) {
  CollectiveLog log;
  constexpr int calls = 1'000'000;
  auto const begin = monotonic_ns();
  for (int i = 0; i < calls; ++i) log.add(bucket);
  auto const each_ns = static_cast<double>(monotonic_ns() - begin) / calls;
  RecordProperty("ns_per_call", std::to_string(each_ns));
  std::printf("%.0f ns per call\n", each_ns);
  EXPECT_LT(each_ns, 5000);
}

}  // namespace
}  // namespace stratagem
