#include "train/run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/console/shell_words.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/clock_offset.hpp"
#include "comm/factory.hpp"
#include "comm/watchdog/watchdog.hpp"
#include "model/exported/remarks.hpp"
#include "mpi/session.hpp"
#include "plan/process_setup.hpp"
#include "strategy/pass/replica.hpp"
#include "strategy/registry.hpp"
#include "trace/trace_file.hpp"
#include "train/core_use.hpp"
#include "train/final_parameters.hpp"
#include "train/finished_run.hpp"
#include "train/manifest.hpp"
#include "train/resume_point.hpp"
#include "train/run_end.hpp"
#include "train/setup.hpp"
#include "train/trainer.hpp"

namespace stratagem {
namespace {

/// Begins the sentence of the end; the number of steps follows.
std::string in_words(TrainResult const& result) {
  if (result.interrupted) return "interrupted after";
  if (result.reason == "time_limit") return "run.max_time_s is over after";
  return result.reason == "max_steps" ? "stopped at run.max_steps after" : "finished";
}

/// Rank 0 does so for all, and keeps the lock.
RunDirectory claim(RunRequest const& request, Existing existing, mpi::Comm const& world) {
  mpi::Session::enter(world, "the run directory");
  RunDirectory claimed;
  auto const place = from_rank_0(world, [&] {
    claimed = claim_run_directory(request.config.run.out, existing);
    return str(claimed.attempt, " ", claimed.already_complete ? 1 : 0, " ", claimed.path.string());
  });
  auto const first = place.find(' '), second = place.find(' ', first + 1);
  return {.path = place.substr(second + 1),
          .attempt = static_cast<int>(*parse_integer(place.substr(0, first))),
          .already_complete = place.substr(first + 1, 1) == "1",
          .lock = claimed.lock};
}

void say_what_runs(Setup const& setup, Log& log) {
  auto const& plan = setup.plan;
  auto const& sources = setup.dataset.sources;
  auto const foreign = std::count_if(sources.begin(), sources.end(),
                                     [](auto const& file) { return !file.published; });
  if (foreign > 0)
    log.info(str(foreign, " of ", sources.size(), " files of ", setup.dataset.name,
                 " are not the published ones, such as ", sources.front().path,
                 "; manifest.json has their checksums"));
  for (auto const& remark : setup.dataset.remarks) log.warning(remark);
  auto const remarks = exported_remarks(setup.model);
  if (!remarks.by_batch.empty()) log.warning(remarks.by_batch);
  auto const& evaluation = remarks.evaluation;
  bool const frozen = plan.config.model.frozen;
  if (!evaluation.empty() && !frozen) log.warning(evaluation);
  if (evaluation.empty() && frozen)
    log.warning(str("model.frozen is true, and all layers of ", plan.config.model.file,
                    " are in training mode; export it with --frozen"));
  log.info(
      str(plan.config.run.name, ": ", setup.model.name, " (", parameters_text(setup.model), ", ",
          setup.model.memory_format == MemoryFormat::channels_last ? "channels_last" : "contiguous",
          ") on ", setup.dataset.name, ", ", name_of(plan.config.strategy), ", ", plan.ranks,
          plan.ranks == 1 ? " rank" : " ranks", " x ", setup.threads,
          setup.threads == 1 ? " thread, " : " threads, ", gpu::device_name(setup.process.device),
          setup.graph ? ", steps kept as a graph" : "", ", batch ", plan.global_batch, ", ",
          format_count(plan.total_steps), " steps; writes ", plan.config.run.out));
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

/// Shared by the ranks of a node that watch each other; none where nobody does.
std::unique_ptr<StatusTable> make_board(WatchdogConfig const& config, mpi::Comm const& world) {
  return config.enabled && world.size() > 1 ? std::make_unique<StatusTable>(world) : nullptr;
}

/// A failure that spoils the state in memory, with where there is a better one.
/// `name`: what people call the run directory.
Error with_checkpoint(Error const& failure, RunDirectory const& directory,
                      std::filesystem::path const& name) {
  auto const code = failure.code();
  if (code != ExitCode::mismatch && code != ExitCode::diverged && code != ExitCode::non_finite)
    return failure;
  auto const saved = checkpoints_of(directory.path);
  auto const newest = saved.empty() ? "" : checkpoint_folder(name) / saved.front().filename();
  return {code,
          str(failure.what(), saved.empty() ? std::string("; no checkpoint was saved")
                                            : "; the newest checkpoint is " + newest.string())};
}

/// What a training came to.
struct End {
  TrainResult result;
  std::string digest = {};              ///< of the parameters, where it came to its end
  std::optional<Error> unwritten = {};  ///< why run.save_weights has no file
  std::optional<Error> unsaved = {};    ///< why no checkpoint has the last step, which was to be
  double core_share = std::nan("");     ///< see CoreUse
  bool trace_complete = true;           ///< of all ranks

  ExitCode code() const {
    if (result.interrupted) return ExitCode::saved;
    return trace_complete && !unwritten && !unsaved ? ExitCode::done : ExitCode::io;
  }
};

/// One run from its first file to its last.
class Run {
 public:
  Run(RunRequest const& request, mpi::Comm const& world, SignalWatch& signals, Log& log,
      Setup& setup, ResumePoint const& beginning, RunDirectory const& directory)
      : request_(request),
        comm_(world),
        signals_(signals),
        log_(log),
        setup_(setup),
        checkpoint_(beginning.checkpoint),
        directory_(directory),
        leader_(world.rank() == 0),
        end_(directory, leader_, log),
        status_table_(make_board(request.config.watchdog, world)),
        recorder_(setup.process.device, request.config.trace.spans_every,
                  status_table_ ? &status_table_->own_sign() : nullptr, request.failpoints) {
    end_.continue_after(beginning.step(), beginning.in_vain);
  }

  ExitCode execute();

 private:
  /// All ranks know it when one of them cannot.
  void begin_files();
  void keep_log();
  void write_first_files(std::vector<std::string> const& ranks);
  std::unique_ptr<Watchdog> make_watchdog();
  /// The job cannot continue: says where this rank is, and keeps what there is.
  void end_by(Verdict const& verdict);
  /// A failure of this rank, with what is known of where and of other ranks.
  Error explained(std::exception const& failure) const;
  void open_trace(Communicator& communicator);
  Member build_member(World& world);
  /// Gives this rank the state it begins with.
  TrainingProgress start_of(Communicator& communicator, Participant& participant);
  CheckpointWriter::Parts writer_parts(Communicator& communicator);
  TrainResult train(World& world, Member const& member, CheckpointWriter& checkpoints,
                    TrainingProgress const& start);
  /// After an interruption: the state is on the disk, or AgreedError.
  void require_saved(CheckpointWriter& checkpoints);
  /// The digest, the weights that were asked for, and what is still to be written of checkpoints.
  void keep_result(Communicator& communicator, Participant& participant,
                   CheckpointWriter& checkpoints, End& end);
  /// True when every rank's trace is whole.
  bool close_trace(trace::Status status, Communicator& communicator);
  ExitCode finish(End const& end);
  SignalWatch::Reactions reactions(Watchdog* watchdog);

  RunRequest const& request_;
  mpi::Comm const& comm_;
  SignalWatch& signals_;
  Log& log_;
  Setup& setup_;
  std::optional<Checkpoint> const& checkpoint_;
  RunDirectory const& directory_;
  bool leader_;
  RunEnd end_;
  std::unique_ptr<Metrics> metrics_;  ///< on rank 0
  std::unique_ptr<StatusTable> status_table_;
  trace::Recorder recorder_;
  std::unique_ptr<Watchdog> watchdog_;  ///< after what it watches
};

ExitCode Run::execute() {
  signals_.forget();
  SignalWatch::Scope const unwatched(signals_, reactions(nullptr));
  begin_files();
  if (leader_) say_what_runs(setup_, log_);
  if (status_table_) watchdog_ = make_watchdog();
  SignalWatch::Scope const watched(signals_, reactions(watchdog_.get()));
  auto const end_trace = [&](Error const& failure) {
    try {
      recorder_.settle();
    } catch (std::exception const&) {
      // The device is lost, and what it would have told of its last step.
    }
    recorder_.event(trace::Severity::error, "failed", failure.what());
    static_cast<void>(end_.close_trace(trace::Status::failed, {}));
  };
  try {
    auto const& config = request_.config;
    auto const world = make_world(comm_of(config.strategy, config.comm), setup_.process, comm_,
                                  &recorder_, status_table_ ? status_table_->ring() : nullptr);
    auto& all = world->all();
    open_trace(all);
    if (leader_ && !all.remark().empty()) log_.warning(std::string(all.remark()));
    recorder_.enter(trace::Activity::init);
    auto const member = build_member(*world);
    auto& own = member.participant();
    CoreUse const core_use(setup_.process);
    CheckpointWriter checkpoints(writer_parts(all));
    End end{train(*world, member, checkpoints, start_of(all, own))};
    bool const interrupted = end.result.interrupted;
    if (interrupted) end_.stop();
    recorder_.enter(trace::Activity::finish, end.result.steps);
    if (interrupted) {
      require_saved(checkpoints);
      end_.saved(end.result.steps);
    } else {
      keep_result(all, own, checkpoints, end);
    }
    end.core_share = core_use.share(all);
    end.trace_complete =
        close_trace(interrupted ? trace::Status::stopped : trace::Status::complete, all);
    mpi::Session::enter(comm_, "the end");
    return finish(end);
  } catch (AgreedError const& failure) {
    AgreedError const error(with_checkpoint(failure, directory_, request_.config.run.out));
    end_trace(error);
    if (leader_) end_.fail(error);
    throw error;
  } catch (std::exception const& failure) {
    auto const error = with_checkpoint(explained(failure), directory_, request_.config.run.out);
    end_trace(error);
    end_.fail(error);
    throw error;
  }
}

std::unique_ptr<Watchdog> Run::make_watchdog() {
  bool const vital = setup_.plan.strategy.is_vital(comm_.rank());
  bool const on_gpu = setup_.process.device.kind == gpu::DeviceKind::cuda;
  Watchdog::Reactions const reactions{
      .end = [this](Verdict const& verdict) { end_by(verdict); },
      .tell = [this](std::string const& text) { log_.warning(text); },
      .mark =
          [this](std::string const& text) {
            recorder_.event(trace::Severity::warning, "slow", text);
          },
      .saves = [this] { return (signals_.interrupted() || end_.stopped()) && !end_.is_saved(); }};
  return std::make_unique<Watchdog>(request_.config.watchdog, *status_table_, recorder_.heartbeat(),
                                    Watchdog::Watched{vital, on_gpu}, reactions);
}

void Run::end_by(Verdict const& verdict) {
  recorder_.failpoints().reach("last_words");
  auto const here = str(recorder_.heartbeat().where(), ", on ", setup_.process.host);
  log_.error(leader_ ? "rank 0: " + here : here);
  if (verdict.speaks) log_.error(verdict.failure.what());
  recorder_.event(trace::Severity::error, "failed", verdict.failure.what());
  recorder_.event(trace::Severity::error, "operations", recorder_.heartbeat().last_operations());
  end_.die(verdict.failure, trace::Status::failed);
}

Error Run::explained(std::exception const& failure) const {
  auto error = as_error(failure);
  if (error.code() == ExitCode::out_of_memory)
    return {error.code(), str("rank ", comm_.rank(), " ran out of memory ", recorder_.where(), ": ",
                              error.what())};
  auto const others = watchdog_ && error.code() == ExitCode::stall ? watchdog_->at_work() : "";
  return others.empty() ? error : Error(error.code(), str(error.what(), "; ", others));
}

void Run::open_trace(Communicator& communicator) {
  auto const clock = measure_clock_offset(communicator);
  std::optional<Error> own;
  try {
    end_.keep(std::make_unique<trace::TraceFile>(
        directory_.trace_file(comm_.rank()), trace_header(request_, setup_, directory_), recorder_,
        clock, request_.config.trace.device_sample_hz));
  } catch (Error const& error) {
    own = error;
  }
  agree(communicator, own);
}

Member Run::build_member(World& world) {
  auto const& config = request_.config;
  return setup_.plan.strategy.strategy->make({.model = setup_.model,
                                              .world = world,
                                              .recorder = recorder_,
                                              .device = setup_.process.device,
                                              .optimizer = config.optimizer,
                                              .precision = config.precision,
                                              .seed = config.run.seed,
                                              .dropout = config.model.dropout,
                                              .recompute = config.model.recompute,
                                              .graph = setup_.graph && request_.failpoints.empty(),
                                              .watchdog = config.watchdog});
}

TrainingProgress Run::start_of(Communicator& communicator, Participant& participant) {
  load_weights(participant.state(), setup_.model, std::exchange(setup_.weights, {}));
  participant.state_replaced();
  if (!checkpoint_) return {};
  std::optional<Error> own;
  try {
    restore(*checkpoint_, setup_.plan.strategy.shares.workers, setup_.model, participant);
  } catch (Error const& error) {
    own = error;
  }
  agree(communicator, own);
  auto const& position = checkpoint_->record().position;
  if (leader_)
    log_.info(str("continues after step ", format_count(position.step), ", from ",
                  checkpoint_->folder().string()));
  return position;
}

CheckpointWriter::Parts Run::writer_parts(Communicator& communicator) {
  auto const& plan = setup_.plan.strategy;
  return {.config = request_.config.checkpoint,
          .run_directory = directory_.path,
          .began_from = checkpoint_ ? std::optional(checkpoint_->folder()) : std::nullopt,
          .attempt = directory_.attempt,
          .model = setup_.model,
          .workers = plan.shares.workers,
          .dealt = deal_tensors(setup_.model, plan.saved.holders),
          .facts = training_facts(request_.values, setup_),
          .communicator = communicator,
          .log = log_,
          .failpoints = request_.failpoints,
          .keep_trace = [this] { end_.flush_now(); },
          .committed = [this](std::int64_t step) { end_.saved(step); }};
}

void Run::begin_files() {
  mpi::Session::enter(comm_, "the first files");
  auto const ranks = comm_.all_gather(rank_facts(setup_.process, setup_.dataset));
  try {
    on_all_ranks(comm_, [&] {
      request_.failpoints.reach("init", 0);
      keep_log();
      if (leader_) write_first_files(ranks);
      return true;
    });
  } catch (AgreedError const& failure) {
    if (leader_) end_.fail(failure);
    throw;
  }
}

void Run::keep_log() {
  try {
    log_.keep_in(directory_.log_file(comm_.rank()));
  } catch (Error const& problem) {
    if (leader_) throw;
    throw Error(problem.code(), problem.what(), {},
                str("is ", directory_.path.string(),
                    " on a file system that all nodes share? Name such a folder with --out"));
  }
}

void Run::write_first_files(std::vector<std::string> const& ranks) {
  replace_file(directory_.path / "config.yaml", request_.effective_config);
  Manifest const manifest{request_.arguments,     ranks,
                          mpi::library_version(), setup_.threads,
                          directory_.attempt,     training_facts(request_.values, setup_)};
  replace_file(directory_.path / "manifest.json",
               to_json(manifest, setup_.plan, setup_.model, setup_.dataset));
  metrics_ = std::make_unique<Metrics>(directory_.path / "metrics.csv", directory_.attempt);
  end_.begin();
}

TrainResult Run::train(World& world, Member const& member, CheckpointWriter& checkpoints,
                       TrainingProgress const& start) {
  auto const& plan = setup_.plan;
  std::optional<ProgressDisplay> display;
  if (leader_)
    display.emplace(request_.progress, plan.total_steps, plan.steps_per_epoch,
                    plan.config.run.epochs, std::string(plan.labels_name()));
  Trainer trainer(
      {.plan = plan,
       .format = input_format(plan, setup_.model, setup_.process.device, setup_.threads),
       .dataset = setup_.dataset,
       .member = member,
       .world = world,
       .recorder = recorder_,
       .device = setup_.process.device,
       .log = log_,
       .signals = signals_,
       .checkpoints = checkpoints,
       .failpoints = request_.failpoints,
       .reached = end_.reached(),
       .display = display ? &*display : nullptr,
       .metrics = metrics_.get()},
      start);
  auto reacting = reactions(watchdog_.get());
  reacting.end_is_near = [&checkpoints] { checkpoints.hasten(); };
  SignalWatch::Scope const scope(signals_, std::move(reacting));
  return trainer.run();
}

void Run::require_saved(CheckpointWriter& checkpoints) {
  if (auto const problem = checkpoints.finish())
    throw AgreedError(ExitCode::io, "the run was interrupted and could not be saved",
                      problem->what(), "make room, and --resume from the checkpoint before");
}

void Run::keep_result(Communicator& communicator, Participant& participant,
                      CheckpointWriter& checkpoints, End& end) {
  auto const state = participant.state();
  auto const& plan = setup_.plan.strategy;
  end.digest = digest_of_parameters(communicator, state, setup_.model, plan);
  if (auto const& file = request_.config.run.save_weights; !file.empty())
    end.unwritten = save_weights(file, communicator, state, setup_.model, plan);
  auto& result = end.result;
  if (end.unwritten && !result.saved) {  // in their stead
    checkpoints.save({.step = result.steps,
                      .train_time_s = result.train_time_s,
                      .wall_time_s = result.wall_time_s},
                     participant);
    result.saved = true;
  }
  auto const failure = checkpoints.finish();
  if (result.saved) end.unsaved = failure;  // any other was warned of
  if (auto const news = checkpoints.news())
    recorder_.event(trace::Severity::info, "checkpoint", *news);
  if (!leader_ || !end.unwritten) return;
  log_.warning(str("the weights were not written: ", end.unwritten->what()));
  if (!failure)
    log_.warning(
        str("a checkpoint has them: stratagem export-weights ", request_.config.run.out, " FILE"));
}

bool Run::close_trace(trace::Status status, Communicator& communicator) {
  auto failure = end_.close_trace(status, measure_clock_offset(communicator));
  auto const file = directory_.trace_file(comm_.rank());
  if (std::error_code unknown; !failure && !std::filesystem::exists(file, unknown) && !unknown)
    failure = Error(ExitCode::io, file.string() + " was removed or renamed during the run");
  auto const texts = gather_texts(communicator, failure ? failure->what() : "");
  bool complete = true;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    complete = false;
    if (leader_) log_.warning(str("the trace of rank ", rank, " is incomplete: ", texts[rank]));
  }
  return complete;
}

ExitCode Run::finish(End const& end) {
  if (!leader_) return end.code();
  auto const& result = end.result;
  auto outcome = end_.outcome();
  outcome.status = result.interrupted ? RunStatus::saved : RunStatus::complete;
  outcome.code = end.code();
  outcome.reason = result.reason;
  if (end.unwritten)
    outcome.reason += str("; the weights were not written: ", end.unwritten->what());
  if (end.unsaved) outcome.reason += str("; the last step was not saved: ", end.unsaved->what());
  outcome.steps = result.steps;
  outcome.digest = end.digest;
  outcome.test_accuracy = result.last.accuracy;
  outcome.test_loss = result.last.loss;
  outcome.train_time_s = result.train_time_s;
  outcome.wall_time_s = result.wall_time_s;
  outcome.core_share = end.core_share;
  outcome.trace_complete = end.trace_complete;
  bool const is_there = directory_.is_there();
  if (is_there) end_.succeed(outcome);
  std::string accuracy;
  if (std::isfinite(result.last.accuracy))
    accuracy = str(", test accuracy ", format_number(100 * result.last.accuracy, 2), " %");
  auto const state = result.interrupted ? std::string("saved; continue with --resume")
                                        : str("digest of the parameters ", end.digest);
  log_.info(str(in_words(result), " ", format_count(result.steps), " steps in ",
                format_whole_seconds(result.train_time_s), accuracy, "; ", state,
                "; its table: stratagem collect ",
                shell_words(std::array{request_.config.run.out})));
  if (is_there) return end.code();
  log_.error(str("run directory ", directory_.path.string(),
                 " was removed or renamed during the run, and does not hold its result"));
  return ExitCode::io;
}

SignalWatch::Reactions Run::reactions(Watchdog* watchdog) {
  return {.saves = request_.config.checkpoint.on_signal,
          .interrupt =
              [this] {
                log_.info("a signal asks to save and stop after this step; Ctrl-C ends at once");
              },
          .flush = [this] { end_.flush(); },
          .end_is_near = {},
          .end =
              [this, watchdog](int signal) {
                auto const cause = watchdog ? watchdog->known_failure() : std::nullopt;
                auto const suspicion = watchdog ? watchdog->silent_node() : "";
                if (watchdog) watchdog->has_spoken();
                end_.die_of(signal, cause, suspicion);
              },
          .tries_to_save =
              [this, watchdog](int signal) {
                if (watchdog && (watchdog->known_failure() || !watchdog->silent_node().empty()))
                  return false;
                end_.foretell(signal);
                end_.flush();
                return true;
              }};
}

}  // namespace

ExitCode run(RunRequest const& request, mpi::Comm const& world, SignalWatch& signals, Log& log) {
  auto setup = set_up(request.config, world, log);
  auto directory = claim(request, request.existing, world);
  if (directory.already_complete) {
    if (!goes_further(request, directory, setup, world, log)) return ExitCode::done;
    directory = claim(request, Existing::extend, world);
  }
  auto const beginning = choose_resume_point(request, directory, setup, world, log);
  static_cast<void>(from_rank_0(world, [&] {
    begin_attempt(directory);
    if (beginning.checkpoint) set_aside_after(*beginning.checkpoint, log);
    return std::string();
  }));
  return Run(request, world, signals, log, setup, beginning, directory).execute();
}

}  // namespace stratagem
