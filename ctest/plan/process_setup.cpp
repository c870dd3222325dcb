#include "plan/process_setup.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "gpu/device.hpp"

namespace stratagem {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// An environment of these alone; of two with one name, the first.
mpi::Environment in(Variables variables) {
  return [variables](char const* name) -> std::optional<std::string> {
    for (auto const& [known, value] : variables)
      if (known == name) return value;
    return std::nullopt;
  };
}

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
  EXPECT_EQ(choose_device(without, DeviceChoice::automatic, in({})).device.kind,
            gpu::DeviceKind::cpu);
}

/// As Slurm, containers and users set them.
TEST(ProcessSetup, GpusOfAJobAreNeverLeftUnusedUnasked) {
  if (gpu::availability().count > 0) GTEST_SKIP() << "needs a machine, or a build, without GPUs";
  ProcessInfo const process;
  for (auto const& [name, value] : Variables{{"SLURM_JOB_GPUS", "0"},
                                             {"SLURM_JOB_GPUS", "0,1"},
                                             {"SLURM_STEP_GPUS", "3"},
                                             {"SLURM_GPUS_ON_NODE", "4"},
                                             {"CUDA_VISIBLE_DEVICES", "0"},
                                             {"CUDA_VISIBLE_DEVICES", "GPU-1b2c"}}) {
    auto const job = in({{name, value}});
    EXPECT_THROW(choose_device(process, DeviceChoice::automatic, job), Error) << name;
    EXPECT_EQ(choose_device(process, DeviceChoice::cpu, job).device.kind, gpu::DeviceKind::cpu);
    for (auto const* hidden : {"", "-1", "NoDevFiles"}) {
      auto const asked = in({{"SLURM_JOB_GPUS", value}, {"CUDA_VISIBLE_DEVICES", hidden}});
      EXPECT_NO_THROW(choose_device(process, DeviceChoice::automatic, asked)) << hidden;
    }
  }
  for (auto const& [name, value] : Variables{
           {"SLURM_GPUS_ON_NODE", "0"}, {"SLURM_JOB_GPUS", ""}, {"NVIDIA_VISIBLE_DEVICES", "all"}})
    EXPECT_NO_THROW(choose_device(process, DeviceChoice::automatic, in({{name, value}}))) << name;
}

}  // namespace
}  // namespace stratagem
