#include "plan/run_plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/sampler.hpp"
#include "plan/process_setup.hpp"
#include "strategy/planned_clients.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

std::int64_t passes_per_step(RunPlan const& plan) {
  auto const& shares = plan.strategy.shares;
  return std::int64_t{shares.workers} * shares.pushes * shares.micro_batches;
}

void check_batch(RunPlan const& plan) {
  auto const& shares = plan.strategy.shares;
  auto const batches = shares.batches_per_step;
  auto const samples = plan.global_batch / batches, parts = passes_per_step(plan) / batches;
  if (samples % parts != 0) {
    auto const below = samples / parts * parts, above = below + parts;
    throw Error(
        ExitCode::usage,
        str("data.global_batch: ", samples, " samples cannot be divided by ", shares.workers,
            " workers x ", shares.pushes > 1 ? str(shares.pushes, " pushes x ") : "",
            shares.micro_batches / batches, " micro-batches"),
        "every pass has the same number of samples",
        below > 0 ? str("the nearest values are ", below, " and ", above)
                  : str("the least value is ", above));
  }
  if (plan.steps_per_epoch == 0 && plan.config.run.epochs > 0)
    throw Error(ExitCode::usage,
                str("data.global_batch: ", samples, " samples ",
                    batches > 1 ? str("for each of ", batches, " steps of a worker ") : "",
                    "are more than the ", plan.images.train, " training ", plan.samples_name()),
                "an epoch would have no step",
                "make the batch or data.holdout smaller, or data.subset larger");
}

void check_input(RunPlan const& plan) {
  if (plan.input.is_text()) return;
  auto const& data = plan.config.data;
  auto const least = least_input(data);
  if (plan.input.size < least)
    throw Error(ExitCode::usage,
                str("data.input_size: ", plan.input.size, " pixels are less than the ", least,
                    " of ", data.dataset),
                "images are put into a larger frame or scaled up, never cut",
                str("take ", least, " or more"));
  auto const channels = channels_of(data), wanted = plan.input.channels;
  if (channels > 1 && channels != wanted)
    throw Error(ExitCode::usage,
                str("images of ", data.dataset, " have ", channels,
                    " channels, and the model takes ", wanted),
                {}, "take a model for such images, or convert them");
  if (auto const means = std::ssize(data.mean); means > 1 && means != wanted)
    throw Error(ExitCode::usage, str("data.mean and data.stddev have ", means, " numbers"),
                str("the model takes ", wanted, " channels"), "give one of each per channel");
}

void check_classes(RunPlan const& plan, Model const& model) {
  auto const least = plan.images.classes;
  auto const classes = model.classes;
  if (classes < least)
    throw Error(ExitCode::usage, str("model.num_classes is ", classes),
                str(plan.config.data.dataset, " has ", least,
                    plan.input.is_text() ? " different tokens" : " classes"),
                plan.config.model.file.empty()
                    ? str("take ", least, " or more")
                    : str("so many outputs has ", plan.config.model.file,
                          ": export the model with ", least, " or more"));
}

void check_batch_norm(RunPlan const& plan, Model const& model) {
  auto const least = least_samples(model, plan.input);
  if (plan.samples_per_pass >= least || plan.config.run.epochs == 0) return;
  throw Error(ExitCode::usage,
              str("data.global_batch: each pass of a worker has 1 sample, and the last maps of ",
                  model.name, " at ", plan.input.size, " pixels have 1 pixel"),
              "batch normalisation needs more than one value per channel",
              "make the batch or data.input_size larger");
}

void check_samples(RunPlan const& plan, Model const& model) {
  if (model.most_samples == 0 || plan.samples_per_pass <= model.most_samples) return;
  throw Error(
      ExitCode::usage,
      str("model file ", plan.config.model.file, " was exported for passes of at most ",
          model.most_samples, " samples, and each pass of a worker has ", plan.samples_per_pass),
      "what it does with more, it does not tell",
      "make data.global_batch smaller, or use more ranks or more passes of a step");
}

/// Steps and samples are counted in 64 bits.
void check_length(RunPlan const& plan) {
  auto const epochs = plan.config.run.epochs;
  auto const images = std::max<std::int64_t>(plan.images.train, 1);
  auto const most = std::numeric_limits<std::int64_t>::max() / images;
  if (epochs <= most) return;
  throw Error(ExitCode::usage,
              str("run.epochs: ", epochs, " times ", images, " ", plan.samples_name(),
                  " are too many to be counted"),
              "the product must be below 2^63",
              str("take ", most, " or less; run.max_time_s ends a run by time"));
}

void check_labels(RunPlan const& plan) {
  auto const& clients = plan.strategy.shares.clients;
  if (clients && clients->config().needs_labels() && plan.input.is_text())
    throw Error(ExitCode::usage, "strategy.split: text has no label for each sample",
                "this split deals samples by their labels", "take split: iid");
}

void deal(RunPlan& plan, at::Tensor const& labels) {
  auto const clients = plan.strategy.shares.clients->config();
  auto const seed = plan.config.run.seed;
  ClientSplit split(clients, seed, plan.images.train, labels);
  plan.strategy.shares.clients->check(split);
  plan.clients = std::make_shared<ClientRounds const>(clients, seed, std::move(split));
}

std::int64_t steps_of(RunPlan const& plan) {
  auto const all = plan.config.run.epochs * plan.steps_per_epoch;
  return plan.config.run.max_steps > 0 ? std::min(all, plan.config.run.max_steps) : all;
}

}  // namespace

InputShape input_shape(RunConfig const& config) {
  constexpr std::int64_t colours = 3;
  if (is_text(config.data)) {
    auto const length = config.data.seq_len;  // 0: the model takes images
    InputShape text{.channels = 0, .size = 0, .tokens = std::max<std::int64_t>(length, 1)};
    if (length > 0) text.vocabulary = whole_size(config.data).classes;
    return text;
  }
  auto channels = input_channels(config.model);
  if (channels == 0) channels = channels_of(config.data);
  return {.channels = channels > 0 ? channels : colours, .size = config.data.input_size};
}

std::int64_t least_samples(Model const& model, InputShape const& input) {
  bool const averages_pixels = model.two_sample_input > 0;  // tokens have no size
  return averages_pixels && input.size <= model.two_sample_input ? 2 : 1;
}

std::int64_t saved_bytes(Model const& model, RunConfig const& config) {
  std::int64_t const element_size = config.precision.compute == Precision::fp64 ? 8 : 4;
  return (1 + state_count(config.optimizer)) * model.parameter_count() * element_size;
}

DatasetSize known_size(DataConfig const& config) {
  return used_part(config, whole_size(config));
}

RunPlan make_run_plan(RunConfig const& config, Model const& model, DatasetSize const& images,
                      int ranks) {
  RunPlan plan{.config = config, .ranks = ranks, .input = input_shape(config), .images = images};
  check_input(plan);
  check_classes(plan, model);
  static_cast<void>(comm_of(config.strategy, config.comm));
  plan.strategy = plan_strategy(config.strategy, model, config.optimizer, config.precision, ranks);
  check_labels(plan);
  plan.global_batch = plan.strategy.shares.batches_per_step *
                      config.data.global_batch_for(plan.strategy.shares.workers);
  plan = with_images(std::move(plan), images);
  plan.batch_per_rank = plan.global_batch / plan.strategy.placement.workers();
  plan.samples_per_pass = plan.global_batch / passes_per_step(plan);
  check_batch_norm(plan, model);
  check_samples(plan, model);
  return plan;
}

RunPlan with_images(RunPlan plan, DatasetSize const& images) {
  plan.images = images;
  plan.steps_per_epoch = steps_per_epoch(images.train, plan.global_batch);
  check_batch(plan);
  check_length(plan);
  plan.total_steps = steps_of(plan);
  if (plan.strategy.shares.clients && !needs_labels(plan)) deal(plan, {});
  return plan;
}

bool needs_labels(RunPlan const& plan) {
  return plan.strategy.shares.clients && plan.strategy.shares.clients->config().needs_labels();
}

RunPlan with_labels(RunPlan plan, SampleSet const& train) {
  if (plan.strategy.shares.clients) deal(plan, train.labels);
  return plan;
}

int decode_threads(DataConfig const& config, bool on_gpu, int threads) {
  if (config.decode_threads > 0) return config.decode_threads;
  return on_gpu ? std::max(threads - 1, 1) : 1;
}

InputFormat input_format(RunPlan const& plan, Model const& model, gpu::Device const& device,
                         int threads) {
  bool const on_gpu = device.kind == gpu::DeviceKind::cuda;
  InputFormat format{.type = compute_type(plan.config.precision.compute),
                     .memory_format = model.memory_format == MemoryFormat::channels_last
                                          ? at::MemoryFormat::ChannelsLast
                                          : at::MemoryFormat::Contiguous,
                     .device = device,
                     .threads = decode_threads(plan.config.data, on_gpu, threads)};
  if (plan.input.is_text()) return format;
  format.channels = plan.input.channels;
  format.size = plan.input.size;
  return format;
}

}  // namespace stratagem
