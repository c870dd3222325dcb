#pragma once

#include <array>
#include <cstdint>

namespace stratagem {

/// tf32: fp32 whose products a GPU forms from 10 bits of mantissa.
enum class Precision { fp32, bf16, fp16, fp64, tf32 };
inline constexpr std::array precision_names{"fp32", "bf16", "fp16", "fp64", "tf32"};
enum class LossScale { dynamic, none };

/// Section `precision` of the configuration.
struct PrecisionConfig {
  Precision compute = Precision::fp32;  ///< of activations and of the copy of the weights they meet
  LossScale loss_scale = LossScale::dynamic;  ///< only for fp16, or where bf16 asks for it
};

enum class Reduction { mean, sum };
enum class LrScaling { none, linear, sqrt };
enum class ScheduleKind { constant, cosine, step };

/// Section `optimizer` of the configuration: SGD.
struct OptimizerConfig {
  double lr = 0.01;
  double momentum = 0.9;
  double weight_decay = 0.0;
  bool nesterov = false;
  double clip_norm = 0;                    ///< largest global gradient norm; 0 does not clip
  Reduction reduction = Reduction::mean;   ///< of the workers' gradients
  LrScaling lr_scaling = LrScaling::none;  ///< in the number of workers
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t step_size = 30;    ///< epochs between drops of the step schedule
  double gamma = 0.1;             ///< factor of each drop
  std::int64_t warmup_steps = 0;  ///< linear from lr / warmup_steps
};

}  // namespace stratagem
