#pragma once

#include <limits>
#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "model/block_tape.hpp"
#include "model/model.hpp"
#include "support/one_pass.hpp"

namespace stratagem::test {

/// The tensors of a model with small random values: parameters are leaves that require gradients.
class State {
 public:
  explicit State(Blocks const& blocks, at::ScalarType type = at::kFloat) {
    at::manual_seed(1);
    for (auto const& block : blocks) {
      auto& own = blocks_.emplace_back();
      for (auto const& spec : block->declaration().parameters()) {
        auto value = at::randn(spec.shape, type).mul_(0.2);
        if (spec.initialiser.kind == Initialiser::Kind::constant) value += spec.initialiser.a;
        own.gradients.push_back(at::full_like(value, std::numeric_limits<double>::quiet_NaN()));
        own.parameters.push_back(value.requires_grad_(true));
      }
      for (auto const& spec : block->declaration().buffers()) {
        bool const floating = at::isFloatingType(spec.type);
        own.buffers.push_back(at::full(spec.shape, spec.value, floating ? type : spec.type));
      }
    }
  }

  /// `borrower` uses a parameter of `lender`, too.
  void lend(int lender, std::size_t parameter, int borrower) {
    auto const& from = blocks_[static_cast<std::size_t>(lender)];
    auto& to = blocks_[static_cast<std::size_t>(borrower)];
    to.parameters.push_back(from.parameters[parameter]);
    to.gradients.push_back(from.gradients[parameter]);
  }

  Frame frame(int block, Context const& context) const {
    auto const& own = blocks_[static_cast<std::size_t>(block)];
    return {own.parameters, own.buffers, context};
  }
  std::vector<at::Tensor> const& parameters(int block) const {
    return blocks_[static_cast<std::size_t>(block)].parameters;
  }
  std::vector<at::Tensor> const& gradients(int block) const {
    return blocks_[static_cast<std::size_t>(block)].gradients;
  }
  std::vector<at::Tensor> const& buffers(int block) const {
    return blocks_[static_cast<std::size_t>(block)].buffers;
  }

 private:
  struct Own {
    std::vector<at::Tensor> parameters, buffers, gradients;
  };
  std::vector<Own> blocks_;
};

/// Output of all blocks through the tape.
inline at::Tensor forward(OnePass& tape, State const& state, at::Tensor x, Context const& context) {
  for (int i = 0; i < tape.blocks(); ++i) x = tape.forward(i, x, state.frame(i, context));
  return x;
}

/// Gradients of all blocks into the state's; returns that of the input of block 0.
inline at::Tensor backward(OnePass& tape, State const& state, at::Tensor gradient,
                           GradWrite write = GradWrite::overwrite) {
  for (int i = tape.blocks() - 1; i >= 0; --i)
    gradient = tape.backward(i, gradient, state.gradients(i), write);
  return gradient;
}

}  // namespace stratagem::test
