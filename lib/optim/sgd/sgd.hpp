#pragma once

#include "optim/optimizer.hpp"
#include "optim/sgd/sgd_config.hpp"

namespace stratagem {

/// Stochastic gradient descent with momentum, by PyTorch's rule without dampening:
///   d = scale g + weight_decay p;   m = momentum m + d;   p = p - lr (nesterov ? d + momentum m :
///   m)
/// m starts at 0, so the first step gives m = d.
class Sgd final : public Optimizer {
 public:
  Sgd(SgdConfig const& own, OptimizerConfig const& config, OwnedElements const& elements,
      at::TensorOptions const& options)
      : Optimizer(config, elements, options), config_(own) {}

 private:
  ElementRule rule(at::ScalarType type, double lr, double scale,
                   double weight_decay) const override;

  SgdConfig config_;
};

}  // namespace stratagem
