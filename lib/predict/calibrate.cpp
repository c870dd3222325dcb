#include "predict/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/bench.hpp"
#include "comm/factory.hpp"
#include "comm/serial/serial_world.hpp"
#include "data/own_data.hpp"
#include "data/survey/read_rate.hpp"
#include "mpi/session.hpp"
#include "plan/process_setup.hpp"
#include "plan/run_plan.hpp"
#include "predict/activations.hpp"
#include "run_files/checkpoint.hpp"
#include "strategy/registry.hpp"
#include "strategy/round.hpp"
#include "strategy/server_work.hpp"
#include "strategy/state/model_layout.hpp"
#include "trace/rank_trace.hpp"
#include "trace/recorder.hpp"

namespace stratagem {
namespace {

using trace::Phase;

constexpr std::size_t most_sizes = 4;  ///< numbers of samples of one kind of pass
constexpr double longest_step_s = 20;
constexpr double enough_s = 1.5;  ///< of steps of one size
constexpr int fewest = 3, most = 40;
constexpr std::int64_t smallest_message = 1 << 10, largest_message = 32 << 20, message_factor = 8;
/// Of bench()'s fewest, the least of which counts: large messages meet fewer delays.
constexpr int repeats_of(std::int64_t bytes) {
  return bytes < 1 << 20 ? 15 : 3;
}
constexpr std::array<std::int64_t, 2> shard_sizes{1 << 16, 1 << 22};  ///< [elements]
constexpr std::int64_t least_saved = 1 << 16, most_saved = 1 << 29;   ///< by a rank [B]
constexpr std::int64_t saved_piece = 16 << 20;                        ///< a tensor [B]

/// `sizes` with at most `most_sizes` of them: first and last stay. One alone gets a smaller one, of
/// no less than `least`, or a larger one.
std::vector<std::int64_t> thinned(std::set<std::int64_t> const& sizes, std::int64_t least) {
  std::vector<std::int64_t> all(sizes.begin(), sizes.end());
  if (all.size() == 1) {
    auto const only = all.front();
    return only <= least ? std::vector{only, 2 * only}
                         : std::vector{std::max(only / 4, least), only};
  }
  if (all.size() <= most_sizes) return all;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < most_sizes; ++i)
    some.push_back(all[(i * (all.size() - 1) + (most_sizes - 1) / 2) / (most_sizes - 1)]);
  return some;
}

/// Seconds of the phases that a pass and its update have.
struct Phases {
  double forward = 0, backward = 0, optimizer = 0;
  double total() const { return forward + backward + optimizer; }
};

/// One batch, again and again.
class SameBatch final : public BatchSource {
 public:
  void ask(Share const&) override {}
  std::optional<Batch> next(std::int64_t end_step) override {
    batch.step = end_step - 1;
    return batch;
  }

  Batch batch;
};

/// Steps of one kind of pass, on this rank alone.
class Stepper {
 public:
  Stepper(RunConfig const& config, gpu::Device const& device)
      : config_(config),
        model_(make_model(config.model, input_shape(config))),
        device_(device),
        alone_(device),
        recorder_(device, 0),
        member_(make_member(serial_strategy(), {.model = model_,
                                                .world = alone_,
                                                .recorder = recorder_,
                                                .device = device,
                                                .optimizer = config.optimizer,
                                                .precision = config.precision,
                                                .dropout = config.model.dropout,
                                                .recompute = config.model.recompute})) {}

  Model const& model() const { return model_; }

  void take(std::int64_t samples) {
    auto const input = input_shape(config_);
    auto const format = model_.memory_format == MemoryFormat::channels_last
                            ? at::MemoryFormat::ChannelsLast
                            : at::MemoryFormat::Contiguous;
    auto& inputs = batches_.batch.inputs;
    auto& labels = batches_.batch.labels;
    labels = at::randint(model_.classes, blank_labels(input, samples).sizes(), at::kLong)
                 .to(device_.torch());
    inputs = input.is_text() ? labels
                             : at::randn({samples, input.channels, input.size, input.size})
                                   .to(compute_type(config_.precision.compute))
                                   .contiguous(format)
                                   .to(device_.torch());
  }

  Phases step() {
    run_round(member_, {.first_step = step_, .end_step = step_ + 1, .batches = &batches_},
              {.before =
                   [this] {
                     recorder_.begin_step(step_, 0);
                     recorder_.enter(Phase::data);
                   },
               .options = [](Batch const&) { return StepOptions{.lr = 0}; },
               .after =
                   [this](Batch const&, StepResult const&) {
                     recorder_.end_step();
                     return false;
                   }});
    recorder_.settle();
    auto const& durations = recorder_.last_step().durations;
    ++step_;
    auto const seconds = [&](Phase phase) {
      return 1e-9 * static_cast<double>(durations[static_cast<std::size_t>(phase)]);
    };
    return {seconds(Phase::forward), seconds(Phase::backward), seconds(Phase::optimizer)};
  }

 private:
  RunConfig const& config_;
  Model model_;
  gpu::Device device_;
  SerialWorld alone_;
  trace::Recorder recorder_;
  Member member_;
  SameBatch batches_;
  std::int64_t step_ = 0;
};

double largest_of(mpi::Comm const& world, double value) {
  for (auto const& text : world.all_gather(shortest(value)))
    value = std::max(value, parse_number(text).value_or(0));
  return value;
}

/// The median step of all ranks at once; the slowest rank's. Nothing when memory is too short.
std::optional<Phases> time_steps(Stepper& stepper, std::int64_t samples, mpi::Comm const& world) {
  try {
    auto const step = [&] { return on_all_ranks(world, [&] { return stepper.step(); }); };
    on_all_ranks(world, [&] {
      stepper.take(samples);
      return true;
    });
    auto last = step();  // allocates
    if (last.total() < longest_step_s / 10) last = step();
    auto const time_s = std::max(largest_of(world, last.total()), 1e-6);
    auto const steps = std::clamp(static_cast<int>(enough_s / time_s), fewest, most);
    std::vector<double> forward, backward, optimizer;
    for (int i = 0; i < steps; ++i) {
      world.barrier();
      auto const phases = step();
      forward.push_back(phases.forward);
      backward.push_back(phases.backward);
      optimizer.push_back(phases.optimizer);
    }
    return Phases{largest_of(world, median(forward)), largest_of(world, median(backward)),
                  largest_of(world, median(optimizer))};
  } catch (Error const& problem) {
    if (problem.code() != ExitCode::out_of_memory) throw;
    return std::nullopt;
  }
}

std::optional<PassTimes> time_passes(WantedPass const& wanted, PassKind const& kind,
                                     ProcessInfo const& process, mpi::Comm const& world, Log& log) {
  auto const stepper = on_all_ranks(world, [&] {
    check_precision(wanted.config.precision, process.device);
    return std::make_unique<Stepper>(wanted.config, process.device);
  });
  std::vector<Curve::Point> forward, backward;
  double optimizer_s = 0, last_s = 0, last_size = 1;
  for (auto const samples : wanted.samples) {
    auto const size = static_cast<double>(samples);
    if (last_s * size / last_size > longest_step_s && forward.size() > 1) {
      log.warning(str(describe(kind), ": ", samples, " samples left out: they would take ",
                      format_duration(last_s * size / last_size), " a step"));
      break;
    }
    auto const phases = time_steps(*stepper, samples, world);
    if (!phases) {
      log.warning(str(describe(kind), ": ", samples, " samples left out: memory is too short"));
      break;
    }
    forward.push_back({size, phases->forward});
    backward.push_back({size, phases->backward});
    optimizer_s = phases->optimizer;
    last_s = phases->total();
    last_size = size;
  }
  if (forward.empty()) return std::nullopt;
  return PassTimes{kind, process.node_size, Curve(forward), Curve(backward), optimizer_s};
}

std::vector<OperationTimes> time_operations(ProcessInfo const& process, mpi::Comm const& comm) {
  auto const world = make_world({}, process, comm, nullptr);
  auto& communicator = world->all();
  std::vector<OperationTimes> times;
  for (auto const operation : {BenchOperation::all_reduce, BenchOperation::reduce_scatter,
                               BenchOperation::all_gather, BenchOperation::send_receive}) {
    if (communicator.size() == 1 && operation == BenchOperation::send_receive) continue;
    std::vector<Curve::Point> points;
    for (auto bytes = smallest_message; bytes <= largest_message; bytes *= message_factor) {
      auto best = bench(communicator, operation, bytes, 0);
      for (int i = 1; i < repeats_of(bytes); ++i)
        best.time_s = std::min(best.time_s, bench(communicator, operation, bytes, 0).time_s);
      points.push_back({static_cast<double>(best.bytes), best.time_s});
    }
    times.push_back(
        {.operation = std::string(bench_operation_names[static_cast<std::size_t>(operation)]),
         .backend = std::string(communicator.backend()),
         .ranks = communicator.size(),
         .ranks_per_node = process.node_size,
         .time = Curve(std::move(points))});
  }
  return times;
}

/// On one thread: servers compute with as few as their node leaves them.
std::vector<ServerTimes> time_servers() {
  at::set_num_threads(1);
  std::vector<ServerTimes> times;
  for (auto const work : server_works()) {
    std::vector<Curve::Point> points;
    for (auto const elements : shard_sizes)
      points.push_back(
          {static_cast<double>(elements), time_push(work, OptimizerConfig{}, elements)});
    times.push_back({std::string(work), Curve(std::move(points))});
  }
  return times;
}

/// By all ranks at once; the slowest rank's.
CodingTimes time_codecs(ProcessInfo const& process, mpi::Comm const& world) {
  world.barrier();
  CodingTimes times{process.node_size, measure_codecs()};
  for (auto& [code, rounding, speed] : times.codecs)
    for (auto* const seconds : {&speed.encode, &speed.decode, &speed.decode_and_add})
      *seconds = largest_of(world, *seconds);
  return times;
}

/// A folder of this rank's, while it lives.
class OwnFolder {
 public:
  OwnFolder(std::filesystem::path const& home, int rank)
      : path_(home / str(".calibrate-", ::getpid(), "-", trace::rank_label(rank))) {
    std::error_code failed;
    std::filesystem::create_directories(path_, failed);
    if (failed) throw Error(ExitCode::io, "cannot create " + path_.string(), failed.message());
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(OwnFolder const&) = delete;
  OwnFolder& operator=(OwnFolder const&) = delete;

  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Of the smallest and the largest model, what each rank saves: rising.
std::set<std::int64_t> saved_sizes(std::vector<WantedPass> const& wanted, int ranks) {
  std::set<std::int64_t> sizes;
  for (auto const& pass : wanted) {
    auto const model = make_model(pass.config.model, input_shape(pass.config));
    sizes.insert(std::clamp(saved_bytes(model, pass.config) / ranks, least_saved, most_saved));
  }
  if (sizes.size() <= 1) return {least_saved, sizes.empty() ? most_saved : *sizes.begin()};
  return {*sizes.begin(), *sizes.rbegin()};
}

/// The longer of two tries of the slowest rank: whoever waits for a checkpoint waits for the worst.
SavingTimes time_saving(std::vector<WantedPass> const& wanted, std::filesystem::path const& home,
                        ProcessInfo const& process, mpi::Comm const& world) {
  auto const folder =
      on_all_ranks(world, [&] { return std::make_unique<OwnFolder>(home, world.rank()); });
  std::vector<Curve::Point> points;
  for (auto const bytes : saved_sizes(wanted, world.size())) {
    NamedTensors tensors;
    for (std::int64_t done = 0; done < bytes; done += saved_piece)
      tensors.emplace_back(std::to_string(done),
                           at::randn({std::min(saved_piece, bytes - done) / std::int64_t{4}}));
    double longest_s = 0;
    for (int i = 0; i < 2; ++i) {
      world.barrier();
      auto const began = monotonic_ns();
      on_all_ranks(world, [&] {
        save_tensors(folder->path() / "state.safetensors", tensors);
        return true;
      });
      longest_s = std::max(longest_s, 1e-9 * static_cast<double>(monotonic_ns() - began));
    }
    points.push_back({static_cast<double>(bytes), largest_of(world, longest_s)});
  }
  return {process.node_size, Curve(std::move(points))};
}

/// The user's own images of all runs, at every size of input, each read by one thread of every rank
/// at once; the slowest rank's.
std::vector<ReadTimes> time_reading(std::vector<WantedPass> const& wanted,
                                    ProcessInfo const& process, mpi::Comm const& world, Log& log) {
  constexpr double enough = 2;  // [s]
  std::vector<ReadTimes> times;
  for (auto const& [config, samples] : wanted) {
    auto const& data = config.data;
    bool const known = std::ranges::any_of(times, [&](ReadTimes const& one) {
      return one.dataset == data.dataset && one.size == data.input_size;
    });
    if (data.path.empty() || data.seq_len > 0 || known) continue;
    log.info(str("reading of ", data.dataset, " at ", data.input_size, " pixels"));
    auto const dataset = on_all_ranks(world, [&] { return open_own_data(data); });
    world.barrier();
    auto const rate = on_all_ranks(world, [&] {
      return read_rate(dataset, {.channels = input_shape(config).channels, .size = data.input_size},
                       enough);
    });
    times.push_back(
        {data.dataset, data.input_size, process.node_size, largest_of(world, 1 / rate)});
  }
  return times;
}

/// On rank 0, those of `known` left out.
ActivationPasses run_small_passes(std::vector<WantedPass> const& wanted, ActivationPasses known,
                                  gpu::DeviceKind device, mpi::Comm const& world) {
  ActivationPredictor predictor(std::move(known), ActivationPredictor::Machine::this_one, device);
  on_all_ranks(world, [&] {
    if (world.rank() != 0) return true;
    for (auto const& pass : wanted) {
      auto const& config = pass.config;
      auto const model = make_model(config.model, input_shape(config));
      for (auto const samples : pass.samples)
        predictor.predict(model, config.model, input_shape(config), config.precision.compute,
                          samples, static_cast<int>(config.run.threads));
    }
    return true;
  });
  return predictor.passes();
}

}  // namespace

std::vector<WantedPass> wanted_passes(std::vector<RunConfig> const& runs) {
  struct Found {
    RunConfig config;
    PassKind kind;
    std::set<std::int64_t> samples;
    std::int64_t least;  ///< that the model trains with
  };
  std::vector<Found> kinds;
  for (auto const& config : runs) {
    try {
      auto const model = make_model(config.model, input_shape(config));
      auto const plan = make_run_plan(config, model, known_size(config.data), config.run.ranks);
      auto const kind = pass_kind(config, model, config.run.threads);
      auto found = std::ranges::find(kinds, kind, &Found::kind);
      if (found == kinds.end())
        found = kinds.insert(kinds.end(), {config, kind, {}, least_samples(model, plan.input)});
      found->samples.insert(plan.samples_per_pass);
    } catch (Error const&) {
      continue;  // `plan` tells why
    }
  }
  std::vector<WantedPass> wanted;
  for (auto const& kind : kinds) wanted.push_back({kind.config, thinned(kind.samples, kind.least)});
  return wanted;
}

Calibration calibrate(std::vector<WantedPass> const& wanted, std::optional<Calibration> known,
                      std::filesystem::path const& folder, mpi::Comm const& world, Log& log) {
  auto const device = wanted.empty() ? DeviceChoice::automatic : wanted.front().config.run.device;
  auto const process = on_all_ranks(
      world, [&, found = discover_process(world)] { return choose_device(found, device); });
  gpu::select(process.device);
  auto const& build = build_info();
  Calibration result{.host = process.host,
                     .device = gpu::device_name(process.device),
                     .on_gpu = process.device.kind == gpu::DeviceKind::cuda,
                     .cores = static_cast<int>(process.cores.size()),
                     .version = str(build.version, " ", build.git_sha),
                     .libtorch = std::string(build.libtorch),
                     .mpi = mpi::library_version(),
                     .measured = utc_time(wall_ns())};
  on_all_ranks(world, [&] {
    if (known) add_to(*known, result);
    return true;
  });
  log.info("what passes hold");
  result.activations = run_small_passes(wanted, known ? known->activations : ActivationPasses(),
                                        process.device.kind, world);
  result.reads = time_reading(wanted, process, world, log);
  log.info("communication");
  result.operations = time_operations(process, world);
  if (world.size() == 1) result.servers = time_servers();
  log.info("codes of gradients");
  result.codings = {time_codecs(process, world)};
  log.info("saving");
  result.savings = {time_saving(wanted, folder, process, world)};
  for (auto const& pass : wanted) {
    int const threads = choose_threads(pass.config.run, process, world, log);
    auto const model = make_model(pass.config.model, input_shape(pass.config));
    auto const kind = pass_kind(pass.config, model, threads);
    if (process.shares_device) continue;
    bool const crowded = !result.on_gpu && process.node_size * threads > result.cores;
    if (largest_of(world, crowded ? 1 : 0) > 0) continue;  // on any node
    at::set_num_threads(threads);
    choose_kernels(pass.config, process.device);
    log.info(describe(kind));
    if (auto times = time_passes(pass, kind, process, world, log))
      result.passes.push_back(std::move(*times));
  }
  if (!known) return result;
  add_to(*known, result);
  return *known;
}

}  // namespace stratagem
