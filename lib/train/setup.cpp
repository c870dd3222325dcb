#include "train/setup.hpp"

#include <filesystem>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <unistd.h>

#include "base/files/file.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/factory.hpp"
#include "model/exported/exported_model.hpp"
#include "model/exported/first_loss.hpp"
#include "model/weights.hpp"
#include "mpi/session.hpp"
#include "plan/process_setup.hpp"
#include "strategy/state/named_tensors.hpp"
#include "train/expectations.hpp"
#include "train/instruction_set.hpp"

namespace stratagem {
namespace {

std::string digest_of_weights(TensorMap const& weights) {
  NamedTensors tensors;
  for (auto const& [name, tensor] : weights) tensors.emplace_back(name, tensor.contiguous());
  return weights.empty() ? "from the seed" : digest_of(tensors);
}

/// What is written after the training is tried before it. The run directory is made until then.
void try_weights_file(RunOptions const& run) {
  namespace fs = std::filesystem;
  if (run.save_weights.empty()) return;
  fs::path const file = run.save_weights;
  auto const folder = fs::absolute(file).lexically_normal().parent_path();
  std::error_code failed;
  if (!fs::exists(folder, failed) && folder == fs::absolute(run.out).lexically_normal()) return;
  auto const trial = file.string() + ".trial." + std::to_string(::getpid());
  try {
    require_regular_or_none(file);
    replace_file(trial, "");
    fs::remove(trial, failed);
  } catch (Error const& problem) {
    throw Error(ExitCode::io, str("run.save_weights: ", problem.what()), {},
                "name a file in a folder that is there, where you may write");
  }
}

}  // namespace

Setup set_up(RunConfig const& config, mpi::Comm const& world, Log& log) {
  if (config.run.ranks != 0 && config.run.ranks != world.size())
    throw AgreedError(
        ExitCode::environment,
        str("run.ranks is ", config.run.ranks, ", but ", world.size(), " ranks were started"), {},
        str("start `mpirun -n ", config.run.ranks, "`, or leave run.ranks out"));
  bool const serves =
      on_all_ranks(world, [&] { return is_server(config.strategy, world.rank(), world.size()); });
  mpi::Session::enter(world, "the choice of devices");
  auto found = discover_process(world, !serves);
  auto process = on_all_ranks(world, [&] {
    check_threads(config.run, found);
    auto chosen = choose_device(found, serves ? DeviceChoice::cpu : config.run.device);
    if (!serves) check_precision(config.precision, chosen.device);
    static_cast<void>(choose_backend(comm_of(config.strategy, config.comm), chosen));
    return chosen;
  });
  int const threads = choose_threads(config.run, process, world, log);
  at::set_num_threads(threads);
  gpu::select(process.device);
  choose_kernels(config, process.device);
  bool const on_cpu = !serves && process.device.kind == gpu::DeviceKind::cpu;
  warn_of_crowding(threads, on_cpu, process, world, log);
  auto const mixed = mixed_instructions(world, on_cpu);
  auto model = on_all_ranks(world, [&] {
    auto const input = input_shape(config);
    auto made = make_model(config.model, input);
    if (made.graph.empty()) return made;
    try_exported_model(made, input);
    if (world.rank() == 0) check_first_loss(config.model, made, input);
    return made;
  });
  // Own images are listed, and stay where they are. Of others, the plan is made with the published
  // sizes first: what cannot fit together need not wait for the data.
  std::optional<Dataset> own;
  if (!config.data.path.empty())
    own = on_all_ranks(world, [&] { return load_dataset(config.data); });
  auto plan = on_all_ranks(world, [&] {
    auto made =
        make_run_plan(config, model, own ? own->size() : known_size(config.data), world.size());
    if (world.rank() == made.strategy.saved.holders.front()) try_weights_file(config.run);
    return made;
  });
  mpi::Session::enter(world, "the reading of weights and data");
  auto weights = on_all_ranks(world, [&] { return read_weights(config.model, model); });
  auto const weights_digest = digest_of_weights(weights);
  auto dataset =
      own ? *std::move(own) : on_all_ranks(world, [&] { return load_dataset(config.data); });
  require_equal(world, "dataset " + dataset.name, dataset.fingerprint, ExitCode::bad_data,
                "give all nodes the same files");
  mpi::Session::enter(world, "the plan");
  plan = on_all_ranks(world, [&] {
    if (!serves) check_expectations(config.expect, facts(dataset, process.device, world.size()));
    return with_labels(with_images(plan, dataset.size()), dataset.train);
  });
  if (plan.clients)
    require_equal(world, "the split of clients", Hash().add(plan.clients->split().hash()).hex(),
                  ExitCode::mismatch, "start the same program everywhere");
  for (auto const& [part, hash] : plan.strategy.hashes)
    require_equal(world, "the plan of " + part, Hash().add(hash).hex(), ExitCode::mismatch,
                  "start the same program everywhere");
  if (mixed && world.rank() == 0 && plan.strategy.synchronous())
    log.warning(str("ranks compute with different instructions: ", *mixed,
                    "; the numbers may differ in their last bits from those of ranks that are "
                    "alike; start on equal nodes, with the same environment"));
  bool const graph =
      on_all_ranks(world, [&] { return !serves && keeps_graph(config, plan.strategy, process); });
  return {.process = std::move(process),
          .threads = threads,
          .model = std::move(model),
          .dataset = std::move(dataset),
          .weights = std::move(weights),
          .weights_digest = weights_digest,
          .plan = std::move(plan),
          .graph = graph};
}

}  // namespace stratagem
