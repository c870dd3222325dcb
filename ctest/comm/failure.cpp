#include "comm/failure.hpp"

#include <new>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

TEST(Failure, MemoryThatRanOutHasItsOwnCode) {
  EXPECT_EQ(as_error(std::bad_alloc()).code(), ExitCode::out_of_memory);
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory");
  } catch (std::exception const& failure) {
    EXPECT_EQ(as_error(failure).code(), ExitCode::out_of_memory);
    EXPECT_STREQ(as_error(failure).what(), "CUDA out of memory");
  }
}

TEST(Failure, WhatHasACodeKeepsIt) {
  Error const known(ExitCode::stall, "a rank hangs");
  EXPECT_EQ(as_error(known).code(), ExitCode::stall);
  EXPECT_STREQ(as_error(known).what(), "a rank hangs");
}

TEST(Failure, TheRestIsUnexpected) {
  EXPECT_EQ(as_error(std::runtime_error("odd")).code(), ExitCode::unexpected);
  try {
    static_cast<void>(at::ones({2}).view({3}));
    ADD_FAILURE() << "2 elements are 3";
  } catch (std::exception const& failure) {
    auto const error = as_error(failure);
    EXPECT_EQ(error.code(), ExitCode::unexpected);
    EXPECT_EQ(std::string(error.what()).find("frame #"), std::string::npos) << "no backtrace";
  }
}

}  // namespace
}  // namespace stratagem
