#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gpu/device.hpp"
#include "optim/optimizer.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/local/local_config.hpp"

namespace stratagem {

/// What workers make of the mean of their parameters: a step of SGD with Nesterov's momentum from
/// where they began, with d = begin - mean in place of a gradient (DiLoCo, Douillard et al. 2023,
/// arXiv 2311.08105): m <- momentum m + d; begin <- begin - lr (d + momentum m). With lr 1 and no
/// momentum that would be the mean, which LocalSgd takes itself.
class OuterStep {
 public:
  /// `numel` elements of the type of the parameters, on their device.
  OuterStep(double lr, double momentum, std::int64_t numel, at::ScalarType type,
            gpu::Device const& device);

  /// The workers begin at `parameters`, without momentum.
  void begin_at(at::Tensor const& parameters);
  /// Whether they have begun anywhere: a checkpoint of another strategy does not know.
  bool has_begun() const;
  /// mean -> where the workers go on from; of the parameters in `range`, just these elements.
  void apply(FlatRange range, at::Tensor const& mean);

  /// Laid out as the parameters. Every rank holds the same.
  OptimizerState state() const {
    return {{LocalConfig::outer_parameters, begin_}, {LocalConfig::outer_momentum_sum, sum_}};
  }

  static constexpr int tensors = 2;  ///< in state()

 private:
  double lr_, momentum_;
  at::Tensor begin_, sum_;
};

}  // namespace stratagem
