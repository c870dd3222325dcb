#pragma once

#include "model/block_tape.hpp"

namespace stratagem::test {

/// A tape with one pass through all of its blocks.
class OnePass {
 public:
  explicit OnePass(Blocks const& blocks, Recompute recompute = {})
      : tape_(blocks, recompute), pass_(tape_.begin()) {}

  int blocks() const { return tape_.blocks(); }
  at::Tensor forward(int block, at::Tensor const& x, Frame const& frame) {
    return tape_.forward(pass_, block, x, frame);
  }
  at::Tensor backward(int block, at::Tensor const& grad_output,
                      std::span<at::Tensor const> gradients, GradWrite write) {
    return tape_.backward(pass_, block, grad_output, gradients, write);
  }
  at::Tensor infer(int block, at::Tensor const& x, Frame const& frame) {
    return tape_.infer(pass_, block, x, frame);
  }
  int first_non_finite() const { return pass_.first_non_finite(); }
  void clear() { pass_.clear(); }

 private:
  BlockTape tape_;
  TapePass pass_;
};

}  // namespace stratagem::test
