#pragma once

#include "optim/adamw/adamw_config.hpp"
#include "optim/optimizer.hpp"

namespace stratagem {

/// Adam with decoupled weight decay (Loshchilov & Hutter, "Decoupled weight decay regularization",
/// ICLR 2019), as PyTorch has it. Of update t = 1, 2, ...:
///   p = p (1 - lr weight_decay);   g = scale g
///   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g g
///   p = p - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
/// m (exp_avg) and v (exp_avg_sq) start at 0.
class Adamw final : public Optimizer {
 public:
  Adamw(AdamwConfig const& own, OptimizerConfig const& config, OwnedElements const& elements,
        at::TensorOptions const& options)
      : Optimizer(config, elements, options), config_(own) {}

  void begin_update() override { ++updates_; }
  std::map<std::string, double*> counters() override { return {{"optimizer_updates", &updates_}}; }

 private:
  ElementRule rule(at::ScalarType type, double lr, double scale,
                   double weight_decay) const override;

  AdamwConfig config_;
  double updates_ = 0;  ///< t, a whole number
};

}  // namespace stratagem
