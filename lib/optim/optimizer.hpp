#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "optim/optim_config.hpp"
#include "params/owned_elements.hpp"

namespace stratagem {

/// What an optimizer keeps for each parameter, by kind: 1-D tensors with an element for each
/// element that it updates.
using OptimizerState = std::vector<std::pair<std::string, at::Tensor>>;

/// An update rule, with what it keeps of the elements that it updates. On the CPU every operation
/// is rounded by itself: the result does not depend on where a range begins, how the elements are
/// cut into ranges, or on the number of threads; in passing it is noted whether gradients are
/// finite.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Once per update, before its first range.
  virtual void begin_update() {}

  /// Updates the elements `range` in place. `parameters`, `gradients`: contiguous, range.size()
  /// elements. Gradients are used as scale x g: the mean, the loss scale and clipping are parts of
  /// `scale`. On a GPU they are scaled in place; and nothing is updated where `refusal`, a fp32
  /// scalar there, is 1.
  void update(FlatRange range, at::Tensor const& parameters, at::Tensor const& gradients, double lr,
              double scale, std::optional<at::Tensor> const& refusal = {});

  /// False once a gradient on the CPU was not; what it updated is spoilt. Those on a GPU are not
  /// looked at.
  bool finite() const { return finite_; }

  /// Of the kinds that state_kinds() names, in that order.
  OptimizerState const& state() const { return state_; }
  /// What else the next update depends on.
  virtual std::map<std::string, double*> counters() { return {}; }

  /// A range, or the part of it that has one weight decay.
  struct Piece {
    at::Tensor parameters, gradients;
    std::vector<at::Tensor> state;  ///< by kind
    double lr = 0;
    double scale = 1;  ///< of the gradients
    double weight_decay = 0;
  };

 protected:
  /// `options`: fp32 or fp64, on some device.
  Optimizer(OptimizerConfig const& config, OwnedElements const& elements,
            at::TensorOptions const& options);

 private:
  void update_piece(FlatRange range, Piece piece, std::optional<at::Tensor> const& refusal);
  /// One pass over all elements. True when all gradients are finite.
  virtual bool update_on_cpu(Piece const& piece) = 0;
  /// Gradients are scaled already.
  virtual void update_on_gpu(Piece const& piece, std::optional<at::Tensor> const& refusal) = 0;

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
