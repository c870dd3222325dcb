#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keys/key.hpp"

namespace stratagem {

/// Workers that step on their own and average their parameters every few steps: local SGD (Stich
/// 2019, arXiv 1805.09767), post-local SGD (Lin et al. 2020, arXiv 1808.07217), DiLoCo, which takes
/// the mean for a gradient (Douillard et al. 2023, arXiv 2311.08105), and streaming DiLoCo, which
/// averages one fragment of the model after the other while steps go on (Douillard et al. 2025,
/// arXiv 2501.18512).
struct LocalConfig {
  static constexpr std::string_view name = "local";
  static constexpr std::string_view description =
      "workers step on their own; their parameters are averaged every few steps";
  /// Of its own state for each parameter, as checkpoints name it.
  static constexpr char const* outer_parameters = "outer_parameters";
  static constexpr char const* outer_momentum_sum = "outer_momentum";
  static constexpr char const* arriving = "outer_arriving";

  int workers = 0;              ///< of which each rank plays equally many; 0: one on each rank
  int inner_steps = 16;         ///< from one averaging to the next; 1: gradients, every step
  std::int64_t begin_step = 0;  ///< gradients are averaged in every step before
  double outer_lr = 1;          ///< of the step that is made with the mean; 1: goes to the mean
  double outer_momentum = 0;    ///< of the same step, Nesterov's
  int fragments = 1;            ///< of the model, each averaged every inner_steps steps, in turn
  int delay = 0;                ///< steps that a fragment is under way before workers take it
  double mixing_factor = 0;     ///< share of its own that a worker keeps of a fragment
  int micro_batches = 1;        ///< forward and backward passes of a worker per step

  /// Whether one rank does what the strategy is for: it may play several workers.
  bool works_on_one_rank() const { return workers > 1; }
};

/// Of section `strategy`, bound to `config`.
Keys keys_of(LocalConfig& config);
/// What `plan --compare` shows of it, by name; with what `given` says.
std::vector<std::pair<std::string, LocalConfig>> alternatives(LocalConfig const& given);

}  // namespace stratagem
