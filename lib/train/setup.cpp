#include "train/setup.hpp"

#include <ATen/Parallel.h>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/factory.hpp"
#include "model/weights.hpp"
#include "train/expectations.hpp"
#include "train/resources.hpp"

namespace stratagem {
namespace {

void check_classes(ModelConfig const& config, Dataset const& dataset) {
  if (config.num_classes < dataset.classes)
    throw Error(ExitCode::usage, str("model.num_classes is ", config.num_classes),
                str(dataset.name, " has ", dataset.classes, " classes"),
                str("take ", dataset.classes, " or more"));
}

}  // namespace

TensorMap read_weights(ModelConfig const& config, Model const& model) {
  if (config.weights.empty()) return {};
  return match_weights(model, read_safetensors(config.weights), config.head, config.weights);
}

Setup set_up(RunConfig const& config, mpi::Comm const& world, Log& log) {
  if (config.run.ranks != 0 && config.run.ranks != world.size())
    throw AgreedError(
        ExitCode::environment,
        str("run.ranks is ", config.run.ranks, ", but ", world.size(), " ranks were started"), {},
        str("start `mpirun -n ", config.run.ranks, "`, or leave run.ranks out"));
  bool const serves =
      on_all_ranks(world, [&] { return is_server(config.strategy, world.rank(), world.size()); });
  auto found = discover_process(world, !serves);
  auto process = on_all_ranks(world, [&] {
    auto chosen = choose_device(found, serves ? DeviceChoice::cpu : config.run.device);
    if (!serves) check_precision(config.precision, chosen.device);
    static_cast<void>(choose_backend(comm_of(config.strategy, config.comm), chosen));
    return chosen;
  });
  int const threads = choose_threads(config.run, process, world, log);
  at::set_num_threads(threads);
  gpu::select(process.device);
  choose_kernels(config, process.device);
  auto model = on_all_ranks(world, [&] { return make_model(config.model, input_shape(config)); });
  // With the published sizes first: what cannot fit together need not wait for the data.
  on_all_ranks(world, [&] {
    return make_run_plan(config, model, published_size(config.data), world.size());
  });
  auto weights = on_all_ranks(world, [&] { return read_weights(config.model, model); });
  auto dataset = on_all_ranks(world, [&] { return load_dataset(config.data); });
  require_equal(world, "dataset " + dataset.name, dataset.fingerprint, ExitCode::bad_data,
                "give all nodes the same files");
  auto plan = on_all_ranks(world, [&] {
    check_classes(config.model, dataset);
    if (!serves) check_expectations(config.expect, facts(dataset, process.device, world.size()));
    return make_run_plan(config, model, {dataset.train.size(), dataset.test.size()}, world.size());
  });
  for (auto const& [part, hash] : plan.strategy.hashes)
    require_equal(world, "the plan of " + part, Hash().add(hash).hex(), ExitCode::mismatch,
                  "start the same program everywhere");
  return {std::move(process), threads,        std::move(model), std::move(dataset),
          std::move(weights), std::move(plan)};
}

}  // namespace stratagem
