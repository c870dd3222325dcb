#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "optim/element_rule.hpp"
#include "optim/optim_config.hpp"
#include "params/owned_elements.hpp"

namespace stratagem {

/// What an optimizer keeps for each parameter, by kind: 1-D tensors with an element for each
/// element that it updates.
using OptimizerState = std::vector<std::pair<std::string, at::Tensor>>;

/// An update rule, with what it keeps of the elements that it updates. Every operation is rounded
/// by itself: the result does not depend on the device, on where a range begins, how the elements
/// are cut into ranges, or on the number of threads. On the CPU it is noted in passing whether
/// gradients are finite.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Once per update, before its first range.
  virtual void begin_update() {}

  /// Updates the elements `range` in place. `parameters`, `gradients`: contiguous, range.size()
  /// elements. Gradients are used as scale x g: the mean, the loss scale and clipping are parts of
  /// `scale`. On a GPU nothing changes where `refusal`, a fp32 scalar there, is 1. `rounded`: of as
  /// many elements, becomes the parameters in its type, where it is defined.
  void update(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients, double lr,
              double scale, std::optional<at::Tensor> const& refusal = {},
              at::Tensor const& rounded = {});

  /// False once a gradient on the CPU was not; what it updated is spoilt. Those on a GPU are not
  /// looked at.
  bool finite() const { return finite_; }

  /// Of the kinds that state_kinds() names, in that order.
  OptimizerState const& state() const { return state_; }
  /// What else the next update depends on.
  virtual std::map<std::string, double*> counters() { return {}; }

 protected:
  /// `options`: fp32 or fp64, on some device.
  Optimizer(OptimizerConfig const& config, OwnedElements const& elements,
            at::TensorOptions const& options);

 private:
  /// In the update that has begun, for elements of a type: fp32 or fp64.
  virtual ElementRule rule(at::ScalarType type, double lr, double scale,
                           double weight_decay) const = 0;

  at::ScalarType type_;
  double weight_decay_;
  std::vector<FlatRange> undecayed_;  ///< ascending
  OptimizerState state_;
  bool finite_ = true;
};

/// The optimizer that the configuration names, whose state is 0.
std::unique_ptr<Optimizer> make_optimizer(OptimizerConfig const& config,
                                          OwnedElements const& elements,
                                          at::TensorOptions const& options);

}  // namespace stratagem
