#include "mpi/patience.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "base/exit_code.hpp"
#include "support/child.hpp"

namespace stratagem::mpi {
namespace {

using namespace std::chrono_literals;

constexpr int lived = 7;

/// Patience of rank 0 for a second, in a process of its own; how that ended.
template <class Body>
int end_of(Body body) {
  test::Child child([&] {
    Patience patience(1s);
    patience.set_rank(0);
    patience.enter("the data");
    body(patience);
    return lived;
  });
  return child.wait();
}

TEST(Patience, EndsAProcessThatWaitsTooLong) {
  testing::internal::CaptureStderr();
  int const code = end_of([](Patience& patience) {
    Patience::Wait const wait(patience, "MPI_Allgather");
    std::this_thread::sleep_for(1h);
  });
  auto const told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, to_int(ExitCode::stall));
  for (auto const* word :
       {"stratagem: error: rank 0 has waited", "at the data", "MPI_Allgather", "comm.timeout_s"})
    EXPECT_NE(told.find(word), std::string::npos) << told;
}

TEST(Patience, CountsEachWaitAlone) {
  EXPECT_EQ(end_of([](Patience& patience) {
              for (int i = 0; i < 30; ++i) {
                Patience::Wait const wait(patience, "MPI_Barrier");
                std::this_thread::sleep_for(50ms);
              }
            }),
            lived);
}

TEST(Patience, DoesNotCountWork) {
  EXPECT_EQ(end_of([](Patience& patience) {
              { Patience::Wait const wait(patience, "MPI_Barrier"); }
              std::this_thread::sleep_for(1500ms);
            }),
            lived);
}

TEST(Patience, ItsLimitMayBeRaised) {
  EXPECT_EQ(end_of([](Patience& patience) {
              patience.set_limit(1h);
              Patience::Wait const wait(patience, "MPI_Barrier");
              std::this_thread::sleep_for(1500ms);
            }),
            lived);
}

/// All who wait would say the same.
TEST(Patience, OtherRanksLetRankZeroSpeakFirst) {
  EXPECT_EQ(end_of([](Patience& patience) {
              patience.set_rank(3);
              Patience::Wait const wait(patience, "MPI_Barrier");
              std::this_thread::sleep_for(1500ms);
            }),
            lived);
}

}  // namespace
}  // namespace stratagem::mpi
