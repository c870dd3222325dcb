#include "comm/factory.hpp"

#include <optional>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

constexpr gpu::Device gpu_device{gpu::DeviceKind::cuda, 0};

CommBackend choice(CommBackend wanted, gpu::Device const& device, bool shares_device) {
  return choose_backend({.backend = wanted},
                        {.size = 2, .device = device, .shares_device = shares_device});
}

std::optional<ExitCode> refusal(CommBackend wanted, gpu::Device const& device, bool shares_device) {
  try {
    choice(wanted, device, shares_device);
  } catch (Error const& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(Factory, AutomaticIsNcclWhereEveryRankHasItsGpu) {
  EXPECT_EQ(choice(CommBackend::automatic, gpu_device, false), CommBackend::nccl);
  EXPECT_EQ(choice(CommBackend::automatic, gpu_device, true), CommBackend::mpi);
  EXPECT_EQ(choice(CommBackend::automatic, {}, false), CommBackend::mpi);
}

TEST(Factory, WhatIsNamedIsTakenOrRefused) {
  EXPECT_EQ(choice(CommBackend::mpi, gpu_device, false), CommBackend::mpi);
  EXPECT_EQ(choice(CommBackend::nccl, gpu_device, false), CommBackend::nccl);
  EXPECT_EQ(refusal(CommBackend::nccl, {}, false), ExitCode::environment);
  EXPECT_EQ(refusal(CommBackend::nccl, gpu_device, true), ExitCode::environment);
}

}  // namespace
}  // namespace stratagem
