#include "comm/mpi/mpi_memory.hpp"

#include <chrono>

#include "base/error.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "comm/remote_memory_suite.hpp"
#include "support/world.hpp"

namespace stratagem::test {
namespace {

using namespace std::chrono_literals;

TEST(MpiMemory, NothingIsTornOrMixed) {
  if (world().size() == 1) return;  // nobody to put to
  MpiWorld of_communicator(world(), {}, nullptr, 60s);
  auto& communicator = of_communicator.all();
  put_and_get(communicator, 200, 5);
  put_and_get(communicator, 50, 100'003);
}

TEST(MpiMemory, NothingIsTornThoughOperationsComeLate) {
  if (world().size() == 1) return;
  MpiWorld of_communicator(world(), {}, nullptr, 60s, 300us);
  auto& communicator = of_communicator.all();
  put_and_get(communicator, 50, 20'011);
}

TEST(MpiMemory, BytesThatArePutAreBytesSent) {
  if (world().size() == 1) return;
  MpiWorld of_communicator(world(), {}, nullptr, 60s);
  auto& communicator = of_communicator.all();
  put_and_get(communicator, 3, 1000);
  int const workers = world().size() - 1;
  bool const owns = world().rank() == workers;
  EXPECT_EQ(communicator.bytes_sent(), 3 * 8000 * (owns ? workers : 1))
      << "puts, and what they get";
}

TEST(MpiMemory, MoreThanThereIsIsRefusedByAllRanks) {
  MpiWorld of_communicator(world(), {}, nullptr, 60s);
  auto& communicator = of_communicator.all();
  try {
    auto const none = communicator.share_memory(1LL << 46, at::kByte);
    ADD_FAILURE() << "64 TiB of shared memory";
  } catch (AgreedError const& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    EXPECT_NE(std::string(error.what()).find("/dev/shm has room for"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stratagem::test
