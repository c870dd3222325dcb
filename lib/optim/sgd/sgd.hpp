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
  Sgd(SgdConfig const& rule, OptimizerConfig const& config, OwnedElements const& elements,
      at::TensorOptions const& options)
      : Optimizer(config, elements, options), rule_(rule) {}

 private:
  bool update_on_cpu(Piece const& piece) override;
  void update_on_gpu(Piece const& piece, std::optional<at::Tensor> const& refusal) override;

  SgdConfig rule_;
};

}  // namespace stratagem
