#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "keys/key.hpp"
#include "optim/adamw/adamw_config.hpp"
#include "optim/sgd/sgd_config.hpp"

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
enum class ScheduleKind { constant, cosine, step, linear, wsd };
/// weights: all parameters but those of one dimension, which are biases and the scales of norms.
enum class Decay { all, weights };

/// The update rules there are, each with its own options.
using UpdateRule = std::variant<SgdConfig, AdamwConfig>;

/// Section `optimizer` of the configuration: an update rule, and what all of them share.
struct OptimizerConfig {
  double lr = SgdConfig::lr;
  double weight_decay = SgdConfig::weight_decay;
  Decay decay = Decay::all;  ///< what weight_decay is for
  UpdateRule rule = {};
  double clip_norm = 0;                    ///< largest global gradient norm; 0 does not clip
  Reduction reduction = Reduction::mean;   ///< of the workers' gradients
  LrScaling lr_scaling = LrScaling::none;  ///< in the number of workers
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t step_size = 30;    ///< epochs between drops of the step schedule
  double gamma = 0.1;             ///< factor of each drop
  std::int64_t warmup_steps = 0;  ///< linear from lr / warmup_steps
  double final_lr = 0;            ///< what cosine, linear and wsd end with
  std::int64_t decay_steps = 0;   ///< over which they fall; 0: see Schedule
};

/// One of each rule, with its defaults; in the order of the alternatives.
std::vector<OptimizerConfig> all_optimizers();

std::string_view name_of(OptimizerConfig const& config);
std::string_view description_of(OptimizerConfig const& config);

/// What the optimizer keeps for each parameter, by kind: checkpoints name these kinds.
std::vector<std::string> state_kinds(OptimizerConfig const& config);
/// How many these are.
std::int64_t state_count(OptimizerConfig const& config);
/// Those of all optimizers.
std::vector<std::string> known_state_kinds();

/// Of section `optimizer`, bound to `config`: valid while it keeps its rule.
Keys keys_of(OptimizerConfig& config);
/// What contradicts another key, if anything.
std::optional<Contradiction> contradiction_in(OptimizerConfig const& config);

}  // namespace stratagem
