#include "train/setup.hpp"

#include <ATen/Parallel.h>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "train/expectations.hpp"
#include "train/resources.hpp"

namespace stratagem {

Setup set_up(RunConfig const& config, mpi::Comm const& world, Log& log) {
  if (config.run.ranks != 0 && config.run.ranks != world.size())
    throw AgreedError(ExitCode::environment, str("run.ranks is ", config.run.ranks, ", but ", world.size(), " ranks were started"), {},
                      str("start `mpirun -n ", config.run.ranks, "`, or leave run.ranks out"));
  auto found = discover_process(world);
  auto process = on_all_ranks(world, [&] {
    auto chosen = choose_device(found, config.run.device);
    check_precision(config.precision, chosen.device);
    return chosen;
  });
  int const threads = choose_threads(config.run, process, world, log);
  at::set_num_threads(threads);
  gpu::select(process.device);
  auto model = on_all_ranks(world, [&] { return make_model(config.model, input_shape(config)); });
  // With the published sizes first: what cannot fit together need not wait for the data.
  on_all_ranks(world, [&] { return make_run_plan(config, model, published_size(config.data), world.size()); });
  auto dataset = on_all_ranks(world, [&] { return load_dataset(config.data); });
  require_equal(world, "dataset " + dataset.name, dataset.fingerprint, ExitCode::bad_data, "give all nodes the same files");
  auto plan = on_all_ranks(world, [&] {
    check_expectations(config.expect, facts(dataset, process.device, world.size()));
    return make_run_plan(config, model, {dataset.train.size(), dataset.test.size()}, world.size());
  });
  require_equal(world, "the plan", Hash().add(plan.strategy.hash).hex(), ExitCode::mismatch, "start the same program everywhere");
  return {std::move(process), threads, std::move(model), std::move(dataset), std::move(plan)};
}

}  // namespace stratagem
