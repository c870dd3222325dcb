#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "base/error.hpp"
#include "comm/communicator_suite.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "comm/nccl/nccl_world.hpp"
#include "support/fakes/faults.hpp"
#include "support/fakes/host_communicator.hpp"
#include "support/world.hpp"

// On the fakes: host memory takes the place of the device's.
namespace {

using namespace std::chrono_literals;
using stratagem::Error;
using stratagem::ExitCode;
using stratagem::make_nccl_world;
using stratagem::MpiWorld;
using stratagem::test::CommunicatorCase;
using stratagem::test::faults;
using stratagem::test::HostCommunicator;
using stratagem::test::world;

constexpr stratagem::gpu::Device device{stratagem::gpu::DeviceKind::cuda, 0};

class NcclCommunicator : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(NcclCommunicator, Does) {
  auto const nccl = make_nccl_world(world(), device, nullptr, 60s);
  HostCommunicator comm(nccl->all());
  EXPECT_EQ(comm.backend(), "nccl");
  GetParam().body(comm);
}

/// Of three ranks, the last one is alone.
TEST_P(NcclCommunicator, DoesInGroups) {
  auto const nccl = make_nccl_world(world(), device, nullptr, 60s);
  auto const alone = std::vector{world().rank()};
  bool const paired = world().rank() < 2 && world().size() > 1;
  HostCommunicator all(nccl->all());
  HostCommunicator pair(nccl->group("pair", paired ? std::vector{0, 1} : alone));
  EXPECT_EQ(pair.size(), paired ? 2 : 1);
  GetParam().body(pair);
  GetParam().body(all);
}

/// Tensors of a device go through pinned copies where ranks share a GPU.
TEST_P(NcclCommunicator, StagedOverMpiDoes) {
  MpiWorld staged(world(), device, nullptr, 60s);
  HostCommunicator comm(staged.all());
  GetParam().body(comm);
}

/// An earlier copy may be seen to end later than the next one.
TEST(NcclCommunicator, StagedMessagesStayInOrder) {
  MpiWorld staged(world(), device, nullptr, 60s);
  HostCommunicator comm(staged.all());
  if (world().size() < 2 || world().rank() > 1) return;
  constexpr int messages = 40;
  std::vector<stratagem::Work> works;
  std::vector<at::Tensor> tensors;
  faults().late_queries = 1000;
  for (int i = 0; i < messages; ++i) {
    tensors.push_back(at::full({100}, world().rank() == 0 ? i : -1, at::kFloat));
    works.push_back(world().rank() == 0 ? comm.send(tensors.back(), 1, 7)
                                        : comm.receive(tensors.back(), 0, 7));
  }
  for (auto& work : works) work.wait_on_host();
  faults() = {};
  for (int i = 0; i < messages; ++i)
    EXPECT_TRUE(tensors[static_cast<std::size_t>(i)].eq(i).all().item<bool>()) << "message " << i;
}

INSTANTIATE_TEST_SUITE_P(Suite, NcclCommunicator,
                         testing::ValuesIn(stratagem::test::communicator_cases()),
                         stratagem::test::case_name);

/// What `act` ends with.
template <class Act>
std::optional<Error> error_of(Act act) {
  try {
    act();
  } catch (Error const& error) {
    return error;
  }
  return std::nullopt;
}

TEST(NcclCommunicator, FailedStartOfOneRankEndsAll) {
  int const last = world().size() - 1;
  if (world().rank() == last) faults().nccl_start = ncclSystemError;
  auto const error = error_of([] { make_nccl_world(world(), device, nullptr, 300ms); });
  faults() = {};
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::environment);
  EXPECT_NE(std::string(error->what()).find("ncclCommInitRankConfig"), std::string::npos);
}

TEST(NcclCommunicator, AsynchronousErrorAbortsAndIsAPeerLost) {
  auto const nccl = make_nccl_world(world(), device, nullptr, 60s);
  auto& comm = nccl->all();
  auto const tensor = at::ones({100}, at::kFloat);
  faults().device_hangs = true;
  auto work = comm.all_reduce(tensor);
  faults().nccl_asynchronous = ncclRemoteError;
  auto const error = error_of([&] { work.wait_on_host(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::peer_lost);
  EXPECT_EQ(faults().aborts, 1);
  faults() = {};
  auto const later = error_of([&] { comm.all_reduce(tensor).wait_on_host(); });
  ASSERT_TRUE(later) << "an aborted communicator stays so";
  EXPECT_EQ(later->code(), ExitCode::peer_lost);
  EXPECT_EQ(faults().aborts, 0);
}

TEST(NcclCommunicator, AnOperationPastItsTimeIsAStall) {
  auto const nccl = make_nccl_world(world(), device, nullptr, 200ms);
  auto& comm = nccl->all();
  faults().device_hangs = true;
  auto work = comm.barrier();
  auto const error = error_of([&] { work.wait_on_host(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::stall);
  EXPECT_NE(std::string(error->what()).find("barrier"), std::string::npos);
  EXPECT_EQ(faults().aborts, 1);
  faults() = {};
}

}  // namespace
