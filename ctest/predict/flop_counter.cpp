#include "predict/flop_counter.hpp"

#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace stratagem {
namespace {

/// Both matrices of a layer meet every element of the sequence, in training or not.
TEST(FlopCounter, AnLstmIsTwoProductsPerStepAndLayer) {
  constexpr std::int64_t length = 5, samples = 3, in = 7, hidden = 11;
  for (bool const trains : {false, true}) {
    at::AutoGradMode const gradients(trains);
    std::vector<at::Tensor> weights;
    std::int64_t elements = 0;
    for (auto const width : {in, hidden}) {  // of two layers
      for (auto const from : {width, hidden}) {
        weights.push_back(at::randn({4 * hidden, from}).requires_grad_(trains));
        elements += weights.back().numel();
      }
      for (int i = 0; i < 2; ++i) weights.push_back(at::zeros({4 * hidden}).requires_grad_(trains));
    }
    auto const state = at::zeros({2, samples, hidden});
    FlopCounter counter;
    at::lstm(at::randn({length, samples, in}), {state, state}, weights, true, 2, 0, trains, false,
             false);
    EXPECT_EQ(counter.take(), 2.0 * length * samples * static_cast<double>(elements)) << trains;
  }
}

}  // namespace
}  // namespace stratagem
