#include "conformance/training.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <ATen/ATen.h>

#include "base/hash/hash.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "data/loader.hpp"
#include "h5/error.hpp"
#include "model/exported/exported_model.hpp"
#include "model/zoo/gpt2.hpp"
#include "model/zoo/lenet.hpp"
#include "model/zoo/vit.hpp"
#include "optim/schedule.hpp"
#include "strategy/planned_clients.hpp"
#include "strategy/registry.hpp"
#include "strategy/round.hpp"
#include "strategy/state/counters.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/exported_files.hpp"
#include "support/one_group.hpp"
#include "support/tiny_models.hpp"
#include "trace/trace_file.hpp"

namespace stratagem::test {
namespace {

constexpr std::int64_t text_length = 12;  // [tokens]

Dataset const& data_of(Training const& training) {
  static Dataset const digits = load_dataset({.dataset = "synthetic-digits", .subset = 600});
  static Dataset const text =
      load_dataset({.dataset = "synthetic-text", .seq_len = text_length, .subset = 600});
  bool const reads = training.model == "tiny_gpt" || training.model == "tiny_experts";
  return reads ? text : digits;
}

}  // namespace

Model test_model(std::string const& name) {
  if (name == "tiny_residual") return tiny_residual(1, 10);
  if (name == "tiny_odd") return tiny_odd(1, 10);
  if (name == "tiny_cliff") return tiny_cliff(1, 10);
  if (name == "tiny_maps" || name == "tiny_maps_not_fused") {
    auto model = tiny_maps(1, 10);
    model.fused = name == "tiny_maps";
    return model;
  }
  if (name == "tiny_exported")
    return make_model({.name = name, .file = tiny_exported().string(), .num_classes = 0},
                      {.channels = 1, .size = 28});
  if (name == "tiny_gpt" || name == "tiny_experts")
    return make_gpt2(name,
                     {.layers = 2,
                      .heads = 3,
                      .width = 24,
                      .context = text_length,
                      .vocabulary = 17,
                      .experts = name == "tiny_experts" ? 4 : 0,
                      .dropout = 0.2},
                     text_length);
  if (name == "tiny_vit")
    return make_vit(name, {.layers = 2, .heads = 3, .width = 24, .patch = 7, .dropout = 0.2},
                    {.channels = 1, .size = 28}, 10);
  auto model = make_lenet({.name = "lenet"}, {.channels = 1, .size = 28});
  model.memory_format = MemoryFormat::channels_last;
  return model;
}

namespace {

LoadPlan load_plan(Training const& training) {
  return {.seed = training_seed, .global_batch = training.global_batch};
}

InputFormat input_format(Training const& training, Model const& model) {
  return {.channels = 1,
          .size = 28,
          .type = compute_type(training.precision.compute),
          .memory_format = model.memory_format == MemoryFormat::channels_last
                               ? at::MemoryFormat::ChannelsLast
                               : at::MemoryFormat::Contiguous,
          .device = training.device};
}

}  // namespace

std::shared_ptr<ClientRounds const> rounds_of(Training const& training, StrategyPlan const& plan) {
  if (!plan.shares.clients) return nullptr;
  auto const& samples = data_of(training).train;
  ClientSplit split(plan.shares.clients->config(), training_seed, samples.size(), samples.labels);
  return std::make_shared<ClientRounds const>(plan.shares.clients->config(), training_seed,
                                              std::move(split));
}

Batch client_batch(Training const& training, StrategyPlan const& plan, std::int64_t round,
                   int place) {
  auto wanted = load_plan(training);
  wanted.global_batch *= plan.shares.batches_per_step;
  wanted.clients = rounds_of(training, plan);
  Loader loader(data_of(training), input_format(training, test_model(training.model)), wanted,
                nullptr);
  loader.ask({round, {place, plan.shares.workers}});
  return *loader.next();
}

Batch training_batch(Training const& training, std::int64_t step, std::int64_t first_slot,
                     int workers) {
  Loader loader(data_of(training), input_format(training, test_model(training.model)),
                load_plan(training), nullptr);
  auto const worker = first_slot * workers / training.global_batch;
  loader.ask({step, {static_cast<int>(worker), workers}});
  return *loader.next();
}

std::filesystem::path trace_of(std::filesystem::path const& folder, int rank) {
  return folder / ("rank-" + std::to_string(rank) + ".h5");
}

StrategyParts parts_of(Training const& training, Model const& model, World& world,
                       trace::Recorder& recorder) {
  return {.model = model,
          .world = world,
          .recorder = recorder,
          .device = training.device,
          .optimizer = training.optimizer,
          .precision = training.precision,
          .seed = training_seed,
          .recompute = training.recompute,
          .graph = training.graph};
}

Trained train(Training const& training, World& world) {
  return train(training, test_model(training.model), world);
}

Trained train(Training const& training, Communicator& communicator) {
  OneGroup world(communicator);
  return train(training, world);
}

Trained train(Training const& training, Model const& model, World& world) {
  auto& communicator = world.all();
  auto const plan = plan_strategy(training.strategy, model, training.optimizer, training.precision,
                                  communicator.size());
  trace::Recorder recorder(training.device, 0);
  std::optional<trace::TraceFile> file;
  if (!training.trace_folder.empty()) {
    h5::initialise_library();
    file.emplace(trace_of(training.trace_folder, communicator.rank()), trace::TraceHeader{},
                 recorder, trace::ClockSample{}, 0);
  }
  auto const member = make_member(training.strategy, parts_of(training, model, world, recorder));
  auto& participant = member.participant();
  Trained trained;
  if (!model.graph.empty()) {
    load_weights(participant.state(), model, exported_state(tiny_exported()));
    participant.state_replaced();
  }
  if (training.before) training.before(participant);
  load_counters(participant.state(), training.counters);
  std::optional<Loader> loader;
  if (auto const slice = plan.placement.slice_of(communicator.rank())) {
    auto wanted = load_plan(training);
    wanted.global_batch *= plan.shares.batches_per_step;
    wanted.clients = rounds_of(training, plan);
    wanted.slice = *slice;
    wanted.first_step = training.first_step;
    wanted.end_step = plan.synchronous() ? training.steps : 0;
    loader.emplace(data_of(training), input_format(training, model), wanted, nullptr);
  }
  constexpr std::int64_t steps_per_epoch = 10;  // of the schedule
  Schedule const schedule(training.optimizer, 1, steps_per_epoch, training.steps);
  std::int64_t sent = 0;  // before the step
  RoundHooks const hooks{.options =
                             [&](Batch const& batch) {
                               recorder.begin_step(batch.step, batch.epoch);
                               sent = world.bytes_sent();
                               auto const every = training.compare_every;
                               return StepOptions{
                                   .lr = schedule.lr(batch.step),
                                   .compare_replicas = every > 0 && batch.step % every == 0};
                             },
                         .after =
                             [&](Batch const&, StepResult const& result) {
                               trained.losses.push_back(result.loss);
                               trained.correct.push_back(result.correct);
                               trained.skipped += result.skipped ? 1 : 0;
                               trained.bytes_sent.push_back(world.bytes_sent() - sent);
                               return true;
                             }};
  for (auto begin = training.first_step; begin < training.steps; begin += training.round()) {
    auto const end = std::min(begin + training.round(), training.steps);
    run_round(member,
              {.first_step = begin, .end_step = end, .batches = loader ? &*loader : nullptr},
              hooks);
    if (training.between) training.between(participant, end);
  }
  if (training.after) training.after(participant, communicator);
  auto const state = participant.state();
  bool const holds = std::ranges::count(plan.saved.holders, communicator.rank()) > 0;
  auto const wanted = [holds](std::string const&) { return holds; };
  trained.parameters = gather(state, State::parameters, model, wanted, communicator);
  std::set<std::string> kinds;
  for (auto const& held : state.of_parameters) kinds.insert(held.kind);
  kinds.erase(State::parameters);
  for (auto const& kind : kinds)
    for (auto const& [name, tensor] : gather(state, kind, model, wanted, communicator))
      trained.kept.emplace_back(kind + "/" + name, tensor);
  trained.buffers = named(model, average(state.buffers, communicator));
  if (file) static_cast<void>(file->close(trace::Status::complete, {}));
  return trained;
}

std::string fingerprint(Trained const& trained) {
  Hash hash;
  for (auto const& tensors : {trained.parameters, trained.kept, trained.buffers})
    hash.add(digest_of(tensors));
  for (auto const correct : trained.correct) hash.add(static_cast<std::uint64_t>(correct));
  return hash.hex();
}

Trained train_emulated(Training training, int workers, SerialConfig serial) {
  serial.emulate_ranks = workers;
  training.strategy = serial;
  training.recompute = {};
  training.graph = false;
  SerialCommunicator alone(training.device);
  return train(training, alone);
}

std::string emulated(Training training, int workers, SerialConfig serial) {
  return fingerprint(train_emulated(std::move(training), workers, serial));
}

}  // namespace stratagem::test
