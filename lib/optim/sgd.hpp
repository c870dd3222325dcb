#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "optim/optim_config.hpp"
#include "optim/optimizer_state.hpp"
#include "params/parameter_layout.hpp"

namespace stratagem {

/// Stochastic gradient descent with momentum on a flat range, by PyTorch's rule without dampening:
///   d = scale g + weight_decay p;   m = momentum m + d;   p = p - lr (nesterov ? d + momentum m :
///   m)
/// m starts at 0, so the first step gives m = d. On the CPU every operation is rounded by itself:
/// the result does not depend on where a range begins, how it is cut, or on the number of threads;
/// in passing it is noted whether gradients are finite.
class Sgd {
 public:
  /// For `size` parameters of type fp32 or fp64, on the device of `options`.
  Sgd(OptimizerConfig const& config, std::int64_t size, at::TensorOptions const& options);

  /// Updates in place the parameters whose momentum is in `range`. `parameters`, `gradients`:
  /// contiguous, range.size() elements. Gradients are used as scale x g: the mean, the loss scale
  /// and clipping are parts of `scale`. On a GPU they are scaled in place; and nothing is updated
  /// where `refusal`, a fp32 scalar there, is 1.
  void step(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients, double lr,
            double scale, std::optional<at::Tensor> const& refusal = {});

  /// False once a gradient on the CPU was not; what it updated is spoilt. Those on a GPU are not
  /// looked at.
  bool finite() const { return finite_; }

  /// [size]; undefined when momentum is 0.
  at::Tensor const& momentum() const { return momentum_; }
  OptimizerState state() const;

 private:
  OptimizerConfig config_;
  at::Tensor momentum_;
  bool finite_ = true;
};

}  // namespace stratagem
