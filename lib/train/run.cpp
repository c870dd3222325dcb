#include "train/run.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "comm/clock_offset.hpp"
#include "comm/factory.hpp"
#include "model/weights.hpp"
#include "mpi/session.hpp"
#include "strategy/factory.hpp"
#include "strategy/replica.hpp"
#include "trace/trace_file.hpp"
#include "train/manifest.hpp"
#include "train/outcome.hpp"
#include "train/setup.hpp"
#include "train/trainer.hpp"

namespace stratagem {
namespace {

/// Rank 0 makes it for all.
RunDirectory claim(RunRequest const& request, mpi::Comm const& world) {
  auto const place = from_rank_0(world, [&] {
    auto const claimed = claim_run_directory(request.config.run.out, request.existing);
    return str(claimed.attempt, " ", claimed.already_complete ? 1 : 0, " ", claimed.path.string());
  });
  auto const first = place.find(' '), second = place.find(' ', first + 1);
  return {.path = place.substr(second + 1),
          .attempt = static_cast<int>(*parse_integer(place.substr(0, first))),
          .already_complete = place.substr(first + 1, 1) == "1"};
}

void say_what_runs(Setup const& setup, RunDirectory const& directory, Log& log) {
  auto const& plan = setup.plan;
  auto const& sources = setup.dataset.sources;
  auto const foreign = std::count_if(sources.begin(), sources.end(),
                                     [](auto const& file) { return !file.published; });
  if (foreign > 0)
    log.info(str(foreign, " of ", sources.size(), " files of ", setup.dataset.name,
                 " are not the published ones, such as ", sources.front().path,
                 "; manifest.json has their checksums"));
  log.info(
      str(plan.config.run.name, ": ", setup.model.name, " (",
          format_count(setup.model.parameter_count()), " parameters, ",
          setup.model.memory_format == MemoryFormat::channels_last ? "channels_last" : "contiguous",
          ") on ", setup.dataset.name, ", ", name_of(plan.config.strategy), ", ", plan.ranks,
          plan.ranks == 1 ? " rank" : " ranks", " x ", setup.threads,
          setup.threads == 1 ? " thread, " : " threads, ", gpu::device_name(setup.process.device),
          ", batch ", plan.global_batch, ", ", format_count(plan.total_steps), " steps; writes ",
          directory.path.string()));
}

trace::TraceHeader trace_header(RunRequest const& request, Setup const& setup,
                                RunDirectory const& directory) {
  auto const& info = build_info();
  return {.provenance = {{"version", std::string(info.version)},
                         {"git_sha", std::string(info.git_sha)},
                         {"libtorch", std::string(info.libtorch)},
                         {"mpi", mpi::library_version()},
                         {"config", request.effective_config},
                         {"run", setup.plan.config.run.name},
                         {"strategy", std::string(name_of(setup.plan.config.strategy))},
                         {"model", setup.model.name},
                         {"dataset_name", setup.dataset.name},
                         {"dataset", setup.dataset.fingerprint}},
          .process = {{"rank", std::int64_t{setup.process.rank}},
                      {"world", std::int64_t{setup.process.size}},
                      {"node_rank", std::int64_t{setup.process.node_rank}},
                      {"host", setup.process.host},
                      {"device", gpu::device_name(setup.process.device)},
                      {"threads", std::int64_t{setup.threads}},
                      {"attempt", std::int64_t{directory.attempt}}}};
}

std::string digest_of(NamedTensors const& tensors) {
  Hash hash;
  add(hash, tensors);
  return hash.hex();
}

/// One run from its first file to its last.
class Run {
 public:
  Run(RunRequest const& request, mpi::Comm const& world, Log& log, Setup& setup,
      RunDirectory const& directory)
      : request_(request),
        world_(world),
        log_(log),
        setup_(setup),
        directory_(directory),
        leader_(world.rank() == 0) {}

  ExitCode execute();

 private:
  void write_first_files();
  TrainResult train(Communicator& communicator, Strategy& strategy, trace::Recorder& recorder);
  void save_weights(NamedTensors const& parameters, Strategy& strategy);
  /// True when every rank's trace is whole.
  bool close_trace(trace::TraceFile& file, Communicator& communicator);
  void finish(TrainResult const& result, std::string const& digest, bool trace_complete);
  void note_failure(Error const& failure);

  RunRequest const& request_;
  mpi::Comm const& world_;
  Log& log_;
  Setup& setup_;
  RunDirectory const& directory_;
  bool leader_;
  Outcome outcome_;
  std::unique_ptr<OutcomeKeeper> keeper_;  ///< on rank 0
  std::unique_ptr<Metrics> metrics_;       ///< on rank 0
};

ExitCode Run::execute() {
  on_all_ranks(world_, [&] {
    write_first_files();
    return true;
  });
  if (leader_) say_what_runs(setup_, directory_, log_);
  auto const& config = request_.config;
  trace::Recorder recorder(setup_.process.device, config.trace.spans_every);
  std::optional<trace::TraceFile> file;
  auto const end_trace = [&](Error const& failure) {
    recorder.event(trace::Severity::error, "failed", failure.what());
    if (file) static_cast<void>(file->close(trace::Status::failed, {}));
  };
  try {
    auto const communicator = make_communicator(config.comm, setup_.process, world_, &recorder);
    auto const clock = measure_clock_offset(*communicator);
    std::optional<Error> own;
    try {
      file.emplace(directory_.trace_file(world_.rank()), trace_header(request_, setup_, directory_),
                   recorder, clock, config.trace.device_sample_hz);
    } catch (Error const& error) {
      own = error;
    }
    agree(*communicator, own);
    auto const strategy = make_strategy(config.strategy, {.model = setup_.model,
                                                          .communicator = *communicator,
                                                          .recorder = recorder,
                                                          .device = setup_.process.device,
                                                          .optimizer = config.optimizer,
                                                          .precision = config.precision,
                                                          .seed = config.run.seed,
                                                          .dropout = config.model.dropout,
                                                          .recompute = config.model.recompute});
    strategy->load(std::exchange(setup_.weights, {}));
    auto const result = train(*communicator, *strategy, recorder);
    auto const parameters = strategy->gather_parameters();
    save_weights(parameters, *strategy);
    bool const trace_complete = close_trace(*file, *communicator);
    if (leader_) finish(result, digest_of(parameters), trace_complete);
    return trace_complete ? ExitCode::done : ExitCode::io;
  } catch (AgreedError const& failure) {
    end_trace(failure);
    if (leader_) note_failure(failure);
    throw;
  } catch (std::exception const& failure) {
    auto error = as_error(failure);
    if (error.code() == ExitCode::out_of_memory)
      error = Error(error.code(), str("rank ", world_.rank(), " ran out of memory ",
                                      recorder.where(), ": ", error.what()));
    end_trace(error);
    note_failure(error);
    throw error;
  }
}

void Run::write_first_files() {
  log_.keep_in(directory_.log_file(world_.rank()));
  outcome_ = {.attempt = directory_.attempt,
              .started_wall_ns = wall_ns(),
              .updated_wall_ns = wall_ns(),
              .host = host_name(),
              .process = ::getpid(),
              .test_accuracy = trace::unknown,
              .train_time_s = trace::unknown};
  auto const ranks = world_.all_gather(rank_facts(setup_.process));
  if (!leader_) return;
  replace_file(directory_.path / "config.yaml", request_.effective_config);
  Manifest const manifest{request_.arguments, ranks, mpi::library_version(), setup_.threads,
                          directory_.attempt};
  replace_file(directory_.path / "manifest.json",
               to_json(manifest, setup_.plan, setup_.model, setup_.dataset));
  metrics_ = std::make_unique<Metrics>(directory_.path / "metrics.csv", directory_.attempt);
  keeper_ = std::make_unique<OutcomeKeeper>(directory_.path, outcome_);
}

TrainResult Run::train(Communicator& communicator, Strategy& strategy, trace::Recorder& recorder) {
  auto const& plan = setup_.plan;
  std::optional<ProgressDisplay> display;
  if (leader_)
    display.emplace(request_.progress, plan.total_steps, plan.steps_per_epoch,
                    plan.config.run.epochs);
  Trainer trainer({.plan = plan,
                   .format = input_format(plan, setup_.model, setup_.process.device),
                   .dataset = setup_.dataset,
                   .strategy = strategy,
                   .communicator = communicator,
                   .recorder = recorder,
                   .device = setup_.process.device,
                   .log = log_,
                   .display = display ? &*display : nullptr,
                   .metrics = metrics_.get()});
  return trainer.run();
}

void Run::save_weights(NamedTensors const& parameters, Strategy& strategy) {
  auto const& path = request_.config.run.save_weights;
  if (path.empty()) return;
  TensorMap tensors(parameters.begin(), parameters.end());
  for (auto& [name, tensor] : strategy.gather_buffers()) tensors.emplace(name, tensor);
  if (!leader_) return;
  NamedTensors ordered;
  for (auto const& state : state_of(setup_.model))
    ordered.emplace_back(state.name, tensors.at(state.name));
  write_safetensors(path, ordered);
}

bool Run::close_trace(trace::TraceFile& file, Communicator& communicator) {
  auto const failure = file.close(trace::Status::complete, measure_clock_offset(communicator));
  auto const texts = gather_texts(communicator, failure ? failure->what() : "");
  bool complete = true;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    complete = false;
    if (leader_) log_.warning(str("the trace of rank ", rank, " is incomplete: ", texts[rank]));
  }
  return complete;
}

void Run::finish(TrainResult const& result, std::string const& digest, bool trace_complete) {
  outcome_.status = RunStatus::complete;
  outcome_.code = trace_complete ? ExitCode::done : ExitCode::io;
  outcome_.reason = result.reason;
  outcome_.steps = result.steps;
  outcome_.digest = digest;
  outcome_.test_accuracy = result.last.accuracy;
  outcome_.train_time_s = result.train_time_s;
  outcome_.trace_complete = trace_complete;
  keeper_->finish(outcome_);
  std::string accuracy;
  if (std::isfinite(result.last.accuracy))
    accuracy = str(", test accuracy ", format_number(100 * result.last.accuracy, 2), " %");
  log_.info(str(result.reason, ": ", format_count(result.steps), " steps in ",
                format_duration(result.train_time_s), accuracy, "; parameters ", digest,
                "; traces in ", directory_.trace_folder().string()));
}

void Run::note_failure(Error const& failure) {
  outcome_.status = RunStatus::failed;
  outcome_.code = failure.code();
  outcome_.reason = failure.what();
  outcome_.trace_complete = false;
  try {
    if (keeper_)
      keeper_->finish(outcome_);
    else
      write_outcome(directory_.path, outcome_);
  } catch (Error const& unwritten) {
    log_.warning(unwritten.what());
  }
}

}  // namespace

ExitCode run(RunRequest const& request, mpi::Comm const& world, Log& log) {
  auto setup = set_up(request.config, world, log);
  auto const directory = claim(request, world);
  if (!directory.already_complete) return Run(request, world, log, setup, directory).execute();
  if (world.rank() == 0)
    log.info(directory.path.string() + " holds this run, COMPLETE: nothing to do");
  return ExitCode::done;
}

}  // namespace stratagem
