#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "comm/world.hpp"
#include "data/clients.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "strategy/registry.hpp"

namespace stratagem::test {

/// A short training whose result is compared bit for bit.
struct Training {
  /// lenet, tiny_residual, tiny_odd, tiny_maps, tiny_maps_not_fused, tiny_cliff, tiny_exported,
  /// tiny_vit, tiny_gpt or tiny_experts
  std::string model = "lenet";
  StrategyConfig strategy;
  gpu::Device device;  ///< where this rank computes
  OptimizerConfig optimizer{.lr = 0.02, .weight_decay = 1e-3};
  PrecisionConfig precision;
  Recompute recompute;
  std::int64_t steps = 20;
  std::int64_t global_batch = 24;
  std::int64_t steps_per_round = 0;        ///< 0: all
  std::string trace_folder;                ///< where each rank writes a trace; empty: nowhere
  std::int64_t first_step = 0;             ///< of those that are made
  std::map<std::string, double> counters;  ///< what it begins with, as a checkpoint has them
  /// What every rank does before the first step.
  std::function<void(Participant&)> before;
  /// The same after the last.
  std::function<void(Participant&, Communicator&)> after;
  /// The same between rounds, when so many steps are done.
  std::function<void(Participant&, std::int64_t)> between;
  std::int64_t compare_every = 0;  ///< steps from one comparison of replicas to the next; 0: none
  bool graph = false;              ///< StrategyParts::graph

  std::int64_t round() const { return steps_per_round > 0 ? steps_per_round : steps; }
};

struct Trained {
  NamedTensors parameters, buffers;
  NamedTensors kept;  ///< by the optimizer, "<kind>/<name>"
  std::vector<double> losses;
  std::vector<std::int64_t> correct;
  std::vector<std::int64_t> bytes_sent;  ///< by this rank, in each step
  std::int64_t skipped = 0;              ///< steps, as this rank knows
};

inline constexpr PrecisionConfig scaled_bf16{.compute = Precision::bf16,
                                             .loss_scale = LossScale::dynamic};
/// A loss scale under which sums of several gradients overflow for some steps.
inline std::map<std::string, double> overflowing() {
  return {{"loss_scale", std::ldexp(1, 127)}, {"loss_scale_good_steps", 0}};
}

/// What strategies are made of; all references outlive them.
StrategyParts parts_of(Training const& training, Model const& model, World& world,
                       trace::Recorder& recorder);

/// Every rank of `world` trains its slice of the same global batches of synthetic digits, or
/// of text, with the learning rate that the optimizer's schedule makes of so many steps.
Trained train(Training const& training, World& world);
/// The same in one group of ranks.
Trained train(Training const& training, Communicator& communicator);
/// The same with a model of one's own, which outlives the call; `training.model` is not looked at.
Trained train(Training const& training, Model const& model, World& world);

/// 16 hex digits over names and bytes of tensors, and over the correct samples of all steps.
std::string fingerprint(Trained const& trained);

inline constexpr std::uint64_t training_seed = 7;

/// What a worker is handed that takes a share of a global batch.
Batch training_batch(Training const& training, std::int64_t step, std::int64_t first_slot,
                     int workers);

/// Where the plan has clients: which of them train, on which samples; else nothing.
std::shared_ptr<ClientRounds const> rounds_of(Training const& training, StrategyPlan const& plan);
/// What a client is handed for a round, with whom else is drawn.
Batch client_batch(Training const& training, StrategyPlan const& plan, std::int64_t round,
                   int place);

std::filesystem::path trace_of(std::filesystem::path const& folder, int rank);

Model test_model(std::string const& name);

/// What one process makes of `training` in the place of so many workers, without recomputation.
Trained train_emulated(Training training, int workers, SerialConfig serial = {});

/// The fingerprint of what one process makes of `training` in the place of so many workers, without
/// recomputation.
std::string emulated(Training training, int workers, SerialConfig serial = {});

}  // namespace stratagem::test
