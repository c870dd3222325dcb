#include "plan/process_setup.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

ExitCode code_of_precision(Precision compute, gpu::DeviceKind kind) {
  try {
    check_precision({.compute = compute}, {.kind = kind});
  } catch (Error const& error) {
    return error.code();
  }
  return ExitCode::done;
}

TEST(ProcessSetup, Fp16AndTf32NeedAGpuAndNothingElseDoes) {
  using enum gpu::DeviceKind;
  for (auto const compute : {Precision::fp16, Precision::tf32}) {
    EXPECT_EQ(code_of_precision(compute, cpu), ExitCode::environment);
    EXPECT_EQ(code_of_precision(compute, cuda), ExitCode::done);
  }
  for (auto const compute : {Precision::fp32, Precision::bf16, Precision::fp64})
    EXPECT_EQ(code_of_precision(compute, cpu), ExitCode::done);
}

TEST(ProcessSetup, ThreadsAreBounded) {
  ProcessInfo two, many;
  two.cores = {0, 1};
  many.cores.resize(100);
  EXPECT_NO_THROW(check_threads({.threads = 64}, two));
  EXPECT_THROW(check_threads({.threads = 65}, two), Error);
  EXPECT_NO_THROW(check_threads({.threads = 400}, many));
  EXPECT_THROW(check_threads({.threads = 401}, many), Error);
}

TEST(ProcessSetup, OnlyServersServe) {
  EXPECT_FALSE(is_server(DdpConfig{}, 1, 2));
  EXPECT_FALSE(is_server(PsConfig{.servers = 2}, 1, 4));
  EXPECT_TRUE(is_server(PsConfig{.servers = 2}, 2, 4));
  EXPECT_TRUE(is_server(PsConfig{.server_ranks = ServerPlacement::first}, 0, 4));
  EXPECT_THROW(is_server(PsConfig{}, 0, 1), Error) << "nobody is left to work";
}

TEST(ProcessSetup, AParameterServerTalksOverMpi) {
  EXPECT_EQ(comm_of(PsConfig{}, {}).backend, CommBackend::mpi);
  EXPECT_EQ(comm_of(DdpConfig{}, {}).backend, CommBackend::automatic);
  EXPECT_EQ(comm_of(FsdpConfig{}, {.backend = CommBackend::nccl}).backend, CommBackend::nccl);
  try {
    static_cast<void>(comm_of(PsConfig{}, {.backend = CommBackend::nccl}));
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(ProcessSetup, TheDeviceIsNeverReplacedUnasked) {
  ProcessInfo without, with;
  with.device = {.kind = gpu::DeviceKind::cuda, .index = 1};
  EXPECT_THROW(choose_device(without, DeviceChoice::cuda), Error);
  EXPECT_EQ(choose_device(with, DeviceChoice::cuda).device.kind, gpu::DeviceKind::cuda);
  EXPECT_EQ(choose_device(with, DeviceChoice::cpu).device.kind, gpu::DeviceKind::cpu);
  EXPECT_EQ(choose_device(with, DeviceChoice::automatic).device.kind, gpu::DeviceKind::cuda);
  EXPECT_EQ(choose_device(without, DeviceChoice::automatic).device.kind, gpu::DeviceKind::cpu);
}

}  // namespace
}  // namespace stratagem
