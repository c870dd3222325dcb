#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "comm/communicator.hpp"

namespace stratagem::test {

/// What every Communicator has to do, whatever the group's size.
struct CommunicatorCase {
  std::string name;
  std::function<void(Communicator&)> body;
};

std::vector<CommunicatorCase> communicator_cases();

inline void PrintTo(CommunicatorCase const& it, std::ostream* out) {
  *out << it.name;
}

/// Names for INSTANTIATE_TEST_SUITE_P.
inline std::string case_name(testing::TestParamInfo<CommunicatorCase> const& info) {
  return info.param.name;
}

/// Rank `rank`'s tensor in these tests, which any rank can make.
at::Tensor values_of(int rank, std::int64_t numel, at::ScalarType type);

/// ((t_0 + t_1) + t_2) + ... over `ranks` ranks; 16-bit floats in fp32, rounded once.
at::Tensor sum_of_ranks(int ranks, std::int64_t numel, at::ScalarType type);

/// The ranks of `ranks` whose numbers are even, or odd, as `rank` is.
std::vector<int> every_second(int rank, int ranks);

/// Equal in type, shape and every bit, wherever they lie.
bool same_bits(at::Tensor const& a, at::Tensor const& b);

}  // namespace stratagem::test
