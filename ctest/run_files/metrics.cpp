#include "run_files/metrics.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

TEST(Metrics, ALinePerEpochBehindOneHeader) {
  test::Scratch const folder;
  auto const path = folder / "metrics.csv";
  trace::EpochRecord const first{.epoch = 0,
                                 .time_s = 1.5,
                                 .train_loss = 2.25,
                                 .train_accuracy = 0.5,
                                 .test_loss = 2,
                                 .test_accuracy = 0.75,
                                 .images_per_s = 64,
                                 .comm_bytes = 4096};
  // Not evaluated: what is not known stays empty.
  trace::EpochRecord const second{.epoch = 1, .time_s = 1.25, .train_loss = 0.1};
  {
    Metrics metrics(path, 0);
    metrics.add(first, 10, 0.1);
    metrics.add(second, 20, 0.05);
  }
  Metrics(path, 1).add(first, 10, 0.1);
  auto const lines = split(read_text(path, ExitCode::io), '\n');
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0],
            "attempt,epoch,step,time_s,train_loss,train_accuracy,test_loss,test_accuracy,"
            "images_per_s,lr,comm_bytes");
  EXPECT_EQ(lines[1], "0,0,10,1.5,2.25,0.5,2,0.75,64,0.1,4096");
  EXPECT_EQ(lines[2], "0,1,20,1.25,0.1,,,,,0.05,0");
  EXPECT_EQ(lines[3], "1,0,10,1.5,2.25,0.5,2,0.75,64,0.1,4096");
  EXPECT_EQ(lines[4], "");
}

}  // namespace
}  // namespace stratagem
