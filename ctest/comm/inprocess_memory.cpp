#include "comm/inprocess/inprocess_memory.hpp"

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "comm/remote_memory_suite.hpp"
#include "comm/serial/serial_communicator.hpp"

namespace stratagem::test {
namespace {

TEST(InprocessMemory, NothingIsTornOrMixedWhateverTheInterleaving) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    run_ranks(4, seed, [](Communicator& communicator) { put_and_get(communicator, 20, 17); });
}

TEST(InprocessMemory, OneRankAloneHasNone) {
  SerialCommunicator alone({});
  EXPECT_THROW(static_cast<void>(alone.share_memory(1, at::kByte)), AgreedError);
}

}  // namespace
}  // namespace stratagem::test
