#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "data/batch.hpp"
#include "data/clients.hpp"
#include "data/dataset.hpp"
#include "gpu/device.hpp"
#include "model/model.hpp"
#include "plan/run_config.hpp"
#include "strategy/registry.hpp"

namespace stratagem {

/// Everything about a run that follows from its configuration and the number of ranks: computed
/// before anything is allocated, printed by `stratagem plan`, equal on all ranks.
struct RunPlan {
  RunConfig config;
  int ranks = 1;
  InputShape input;
  DatasetSize images;
  std::int64_t global_batch = 0;      ///< samples of a step, of all workers
  std::int64_t batch_per_rank = 0;    ///< samples a worker is handed per step
  std::int64_t samples_per_pass = 0;  ///< of one forward pass of one worker
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  StrategyPlan strategy;
  /// Where samples belong to clients, once it is known whose they are; else nothing.
  std::shared_ptr<ClientRounds const> clients = {};

  std::string_view samples_name() const { return input.is_text() ? "sequences" : "images"; }
  /// What is predicted of a sample: one label, or one per token.
  std::int64_t labels_per_sample() const { return input.is_text() ? input.tokens : 1; }
  /// What rates count.
  std::string_view labels_name() const { return input.is_text() ? "tokens" : "images"; }
};

/// Error(usage) saying what does not fit together: the batch and the ranks, more ranks than
/// samples, batches of one sample that BatchNorm refuses, a strategy and the number of ranks.
RunPlan make_run_plan(RunConfig const& config, Model const& model, DatasetSize const& images,
                      int ranks);

/// The same with other numbers of images, which only steps and whose they are depend on: the
/// strategy's plan stays the same object. Error(usage) as above.
RunPlan with_images(RunPlan plan, DatasetSize const& images);

/// Whether that is known only with the labels.
bool needs_labels(RunPlan const& plan);
/// Deals the images to clients, if they belong to such. Error(usage) where that cannot be.
RunPlan with_labels(RunPlan plan, SampleSet const& train);

/// Of a pass in training: BatchNorm refuses one sample where the last maps have one pixel.
std::int64_t least_samples(Model const& model, InputShape const& input);

/// Parameters and the optimizer's state, as a checkpoint has them [B].
std::int64_t saved_bytes(Model const& model, RunConfig const& config);

/// The shape of what the model of `config` sees: its own number of channels, else the dataset's, or
/// colours where that has any. Errors as channels_of().
InputShape input_shape(RunConfig const& config);

/// Threads of a rank that read the user's own images: data.decode_threads, else 1, and beside a GPU
/// one less than `threads`, those of LibTorch, whose cores it leaves free.
int decode_threads(DataConfig const& config, bool on_gpu, int threads);

/// What the model of a plan wants its images to be. `threads`: of LibTorch per rank.
InputFormat input_format(RunPlan const& plan, Model const& model, gpu::Device const& device,
                         int threads);

/// What whole_size() says of the dataset, as far as the run uses it. Errors as whole_size() and
/// used_part().
DatasetSize known_size(DataConfig const& config);

}  // namespace stratagem
