#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "gpu/branch.hpp"
#include "gpu/device.hpp"

namespace stratagem {

/// Where the gradients of a block are wanted, while its backward pass runs: an operation that can
/// compute one there saves a copy of it. Shared with what autograd keeps.
struct GradientPlaces final : torch::CustomClassHolder {
  explicit GradientPlaces(std::shared_ptr<gpu::Branch> of_tape) : branch(std::move(of_tape)) {}

  std::vector<at::Tensor> places;  ///< of parameters; undefined: as autograd returns it
  std::vector<bool> landed;        ///< which are there
  /// A block's input, and the sum of its gradients so far, to which an operation may add its own;
  /// undefined where autograd returns it.
  at::Tensor input, of_input;
  std::shared_ptr<gpu::Branch> branch;  ///< gradients at their places may be computed there

  void open(std::size_t parameters) {
    places.assign(parameters, {});
    landed.assign(parameters, false);
  }
  /// Where to compute a gradient; undefined where that is not wanted, or something is there
  /// already.
  at::Tensor take(std::int64_t parameter) const {
    auto const index = static_cast<std::size_t>(parameter);
    if (index >= places.size() || landed[index]) return {};
    return places[index];
  }
  /// As take(), if that lets the gradient be computed beside others.
  at::Tensor take_beside(std::int64_t parameter, at::Tensor const& operand) const {
    bool const beside = gpu::Branch::possible(gpu::Device::of(operand.device()));
    return beside ? take(parameter) : at::Tensor();
  }
  /// Computes a gradient at the place that was taken, beside what follows.
  void land(std::int64_t parameter, std::vector<at::Tensor> const& operands,
            std::function<void()> const& compute) {
    branch->run(gpu::Device::of(operands.front().device()), operands, compute);
    landed[static_cast<std::size_t>(parameter)] = true;
  }
  bool adds_to(at::Tensor const& x) const { return of_input.defined() && x.is_same(input); }
  void close() {
    places.clear();
    input.reset();
    of_input.reset();
  }
};

}  // namespace stratagem
