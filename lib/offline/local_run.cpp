#include "offline/local_run.hpp"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "optim/schedule.hpp"
#include "strategy/offline.hpp"
#include "strategy/pass/cross_entropy.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t evaluation_batch = 256;

InputFormat format_of(RunPlan const& plan, Model const& model) {
  return input_format(plan, model, {}, at::get_num_threads());
}

RunPlan plan_of(RunConfig const& config, Model const& model, Dataset const& dataset, int ranks) {
  return make_run_plan(config, model, dataset.size(), ranks);
}

void require_servers(RunConfig const& config) {
  if (servers_of(config.strategy) == 0)
    throw Error(ExitCode::usage, str("strategy ", name_of(config.strategy)),
                "only a parameter server has an order of events", "name one of strategy ps");
}

void check_traces(trace::RunTraces const& traces) {
  for (auto const& rank : traces.ranks) {
    auto const refuse = [&](bool wrong, char const* why) {
      if (wrong)
        throw Error(ExitCode::bad_data, str("rank ", rank.rank(), " cannot be replayed"), why,
                    "replay a run that came to its end in one attempt");
    };
    refuse(!rank.closed_cleanly || rank.status != trace::Status::complete,
           "its trace does not go to the end of the run");
    refuse(rank.dropped > 0, "its trace has lost records");
    refuse(std::get<std::int64_t>(rank.process.at("attempt")) > 0,
           "the run was resumed, and what it resumed from is not in the traces");
  }
  if (!traces.remarks.empty())
    throw Error(ExitCode::bad_data, "the run cannot be replayed", join(traces.remarks, "; "));
}

}  // namespace

LocalRun::LocalRun(RunConfig const& config, int ranks)
    : model_(make_model(config.model, input_shape(config))),
      dataset_(load_dataset(config.data)),
      weights_(read_weights(config.model, model_)),
      plan_(plan_of(config, model_, dataset_, ranks)),
      alone_({}),
      recorder_({}, 0),
      loader_(dataset_, format_of(plan_, model_),
              {.seed = config.run.seed,
               .global_batch = plan_.global_batch,
               .augment = config.data.augment},
              nullptr),
      test_maker_(dataset_, format_of(plan_, model_)) {}

StrategyParts LocalRun::parts() {
  auto const& config = plan_.config;
  return {.model = model_,
          .world = alone_,
          .recorder = recorder_,
          .device = {},
          .optimizer = config.optimizer,
          .precision = config.precision,
          .seed = config.run.seed,
          .dropout = config.model.dropout,
          .recompute = config.model.recompute};
}

Batch LocalRun::batch(Share const& share) {
  loader_.ask(share);
  return *loader_.next();
}

LocalRun::Tested LocalRun::test(
    std::function<at::Tensor(at::Tensor const& inputs)> const& predict) const {
  at::NoGradGuard const no_grad;
  double loss = 0, correct = 0, labels = 0;
  for (std::int64_t begin = 0; begin < dataset_.test.size(); begin += evaluation_batch) {
    auto const end = std::min(begin + evaluation_batch, dataset_.test.size());
    auto const batch = test_maker_.evaluation_batch(dataset_.test, {begin, end});
    auto const sums = loss_sums(predict(batch.inputs), batch.labels);
    loss += sums.loss.item<double>();
    correct += sums.correct.item<double>();
    labels += static_cast<double>(batch.labels.numel());
  }
  return {loss / labels, correct / labels};
}

Replayed replay_run(RunConfig const& config, trace::RunTraces const& traces) {
  require_servers(config);
  check_traces(traces);
  auto const& first = traces.ranks.front();
  at::set_num_threads(static_cast<int>(std::get<std::int64_t>(first.process.at("threads"))));
  LocalRun run(config, static_cast<int>(traces.ranks.size()));
  if (std::get<std::string>(first.provenance.at("dataset")) != run.dataset().fingerprint)
    throw Error(ExitCode::bad_data, "the data are not those of the run",
                run.dataset().name + " has another fingerprint", "name its files in config.yaml");
  std::vector<trace::RankTrace> servers;
  for (int const rank : run.plan().strategy.placement.server_ranks())
    servers.push_back(traces.ranks.at(static_cast<std::size_t>(rank)));
  auto const& planned = run.plan().strategy;
  auto const replay = planned.servers.offline->replay(run.parts(), servers);
  replay->load(run.weights());
  auto const parts = planned.shares.workers * planned.shares.pushes;
  auto const samples = run.plan().global_batch / parts;
  auto const parameters = replay->run([&](std::int64_t step, std::int64_t first_slot) {
    auto const part = static_cast<int>(first_slot / samples);
    return run.batch({step, {part, parts}});
  });
  return {.digest = digest_of(parameters),
          .pushes = replay->pushes(),
          .servers = static_cast<int>(servers.size())};
}

SimulatedEpoch simulate_run(RunConfig const& config, ClusterModel const& cluster, int workers,
                            std::function<void(SimulatedEpoch const&)> const& told) {
  require_servers(config);
  if (config.run.threads > 0) at::set_num_threads(config.run.threads);
  LocalRun run(config, workers + servers_of(config.strategy));
  auto const& plan = run.plan();
  Schedule const schedule(config.optimizer, workers, plan.steps_per_epoch, plan.total_steps);
  auto const simulation = plan.strategy.servers.offline->simulate(
      cluster, run.parts(),
      {.batch = [&](Share const& share) { return run.batch(share); },
       .lr = [&](std::int64_t step) { return schedule.lr(step); }});
  simulation->load(run.weights());
  SimulatedEpoch last{.cluster = simulation->cluster()};
  for (std::int64_t begin = 0; begin < plan.total_steps; begin += plan.steps_per_epoch) {
    auto const end = std::min(begin + plan.steps_per_epoch, plan.total_steps);
    last.epoch = begin / plan.steps_per_epoch;
    last.train_loss = simulation->run_round(begin, end);
    auto const every = config.run.evaluate_every;
    if (end < plan.total_steps && (every == 0 || (last.epoch + 1) % every != 0)) continue;
    last.test = run.test([&](at::Tensor const& inputs) { return simulation->predict(inputs); });
    last.counts = simulation->counts();
    told(last);
  }
  return last;
}

}  // namespace stratagem
