#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "app/options.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/bench.hpp"
#include "comm/factory.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "compress/codec_speed.hpp"
#include "plan/process_setup.hpp"
#include "strategy/registry.hpp"

namespace stratagem::app {
namespace {

struct Row {
  std::string operation;
  BenchResult result;
  double speed_up = 0;  ///< over MPI_Allreduce, median of pairs; 0: not measured
};

struct Plan {
  std::vector<BenchOperation> operations;
  bool push_pull = false;           ///< of a parameter server, too
  std::vector<std::int64_t> sizes;  ///< [B]
};

constexpr char const* push_pull = "push_pull";

void add_operations(std::string const& list, Plan& plan) {
  std::vector<std::string> known(bench_operation_names.begin(), bench_operation_names.end());
  known.emplace_back(push_pull);
  for (auto const& name : split(list, ',')) {
    auto const found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      throw Error(ExitCode::usage,
                  "--ops: unknown operation \"" + name + "\"" + did_you_mean(name, known), {},
                  "take some of " + join(known, ","));
    if (name == push_pull)
      plan.push_pull = true;
    else
      plan.operations.push_back(static_cast<BenchOperation>(found - known.begin()));
  }
}

Plan make_plan(Options const& options) {
  Plan plan;
  add_operations(options.text("ops"), plan);
  auto const begin = options.bytes("begin", Unit::optional),
             end = options.bytes("end", Unit::optional),
             factor = options.integer("factor", 2, 1024);
  if (begin < 4 || begin > end)
    throw Error(ExitCode::usage, str("sizes from ", begin, " to ", end, " bytes"),
                "none of them can be measured", "take 4 <= -b <= -e");
  for (auto size = begin; size <= end; size *= factor) plan.sizes.push_back(size);
  return plan;
}

/// A push of all workers, the update, and their pull, through each transport; and what one process
/// needs for the copies and the update.
void add_push_pull(Plan const& plan, World& world, std::vector<Row>& rows) {
  constexpr int rounds = 20;
  if (!plan.push_pull) return;
  if (world.all().size() < 2)
    throw AgreedError(ExitCode::usage, str("--ops: ", push_pull, " on one rank"),
                      "it takes a server and a worker", "start two ranks");
  auto const row = [](std::string_view name, std::int64_t bytes, double time_s) {
    auto const bandwidth = 2 * static_cast<double>(bytes) / time_s;
    return Row{str(push_pull, " ", name),
               {.bytes = bytes,
                .numel = bytes / 4,
                .iterations = rounds,
                .time_s = time_s,
                .algbw = bandwidth,
                .busbw = bandwidth}};
  };
  for (auto const bytes : plan.sizes) {
    for (auto const& [name, time_s] : exchange_times(world, bytes, rounds))
      rows.push_back(row(name, bytes, time_s));
  }
}

std::vector<Row> measure(Plan const& plan, World& world) {
  std::vector<Row> rows;
  for (auto const operation : plan.operations)
    for (auto const size : plan.sizes)
      rows.push_back({std::string(bench_operation_names[static_cast<std::size_t>(operation)]),
                      bench(world.all(), operation, size)});
  add_push_pull(plan, world, rows);
  return rows;
}

/// The MPI library's own all-reduce beside ours, which it is compared with in `pairs` pairs of
/// runs.
void add_reference(Plan const& plan, int pairs, Communicator& communicator, mpi::Comm const& world,
                   std::vector<Row>& rows) {
  if (std::find(plan.operations.begin(), plan.operations.end(), BenchOperation::all_reduce) ==
      plan.operations.end())
    return;
  for (auto const size : plan.sizes)
    rows.push_back({"MPI_Allreduce", bench_library_all_reduce(communicator, world, size)});
  if (pairs == 0) return;
  auto const name = bench_operation_names[static_cast<std::size_t>(BenchOperation::all_reduce)];
  auto row = std::ranges::find(rows, name, &Row::operation);
  for (auto const size : plan.sizes)
    (row++)->speed_up = speed_up_over_library(communicator, world, size, pairs);
}

std::string to_text(std::vector<Row> const& rows) {
  std::vector<Table::Column> columns{{"operation", Align::left},
                                     {"size B"},
                                     {"elements"},
                                     {"iterations"},
                                     {"time us"},
                                     {"algbw GB/s"},
                                     {"busbw GB/s"},
                                     {"wrong"}};
  bool const compares = std::ranges::any_of(rows, [](auto const& row) { return row.speed_up > 0; });
  if (compares) columns.push_back({"x MPI_Allreduce"});
  Table table(columns);
  for (auto const& [operation, result, speed_up] : rows) {
    std::vector<std::string> cells{operation,
                                   std::to_string(result.bytes),
                                   std::to_string(result.numel),
                                   std::to_string(result.iterations),
                                   format_number(result.time_s * 1e6, 1),
                                   format_number(result.algbw * 1e-9, 3),
                                   format_number(result.busbw * 1e-9, 3),
                                   std::to_string(result.wrong)};
    if (compares) cells.push_back(speed_up > 0 ? format_number(speed_up, 2) : "-");
    table.add_row(cells);
  }
  return table.render();
}

struct Setting {
  std::string backend;
  std::string route;  ///< of the communicator
  int ranks;
};

std::string to_json(std::vector<Row> const& rows, Setting const& setting) {
  auto list = nlohmann::json::array();
  for (auto const& [operation, result, speed_up] : rows) {
    list.push_back({{"operation", operation},
                    {"bytes", result.bytes},
                    {"elements", result.numel},
                    {"iterations", result.iterations},
                    {"time_s", result.time_s},
                    {"algbw_B_per_s", result.algbw},
                    {"busbw_B_per_s", result.busbw},
                    {"wrong", result.wrong}});
    if (speed_up > 0) list.back()["speed_up_over_MPI_Allreduce"] = speed_up;
  }
  return nlohmann::json{{"backend", setting.backend},
                        {"route", setting.route},
                        {"ranks", setting.ranks},
                        {"rows", list}}
             .dump(2) +
         "\n";
}

ExitCode report(Options const& options, std::vector<Row> const& rows, Setting const& setting) {
  std::cout << "backend " << setting.backend << (setting.route.empty() ? "" : ", ") << setting.route
            << ", " << setting.ranks << (setting.ranks == 1 ? " rank\n" : " ranks\n")
            << to_text(rows);
  if (options.has("json")) replace_file(options.text("json"), to_json(rows, setting));
  auto const wrong =
      std::any_of(rows.begin(), rows.end(), [](auto const& row) { return row.result.wrong > 0; });
  return wrong ? ExitCode::unexpected : ExitCode::done;
}

ExitCode measure_threads(Options const& options, Plan const& plan) {
  for (auto const* name : {"pairs", "node-memory", "algorithm", "ranks-per-node"})
    if (options.has(name))
      throw Error(ExitCode::usage, str("--", name, " with --backend inprocess"),
                  "threads of one process use no MPI", "leave it out, or take --backend mpi");
  auto const ranks = static_cast<int>(options.integer("ranks", 1, 64));
  std::vector<Row> rows;
  run_worlds(ranks, 1, [&](World& world) {
    auto own = measure(plan, world);
    if (world.all().rank() == 0) rows = std::move(own);
  });
  return report(options, rows, {"inprocess", "", ranks});
}

ExitCode measure_processes(Options const& options, Plan const& plan, CommConfig const& config,
                           mpi::Comm const& comm, Log& log) {
  auto const process = on_all_ranks(comm, [&, found = discover_process(comm)] {
    bool const any = config.backend == CommBackend::automatic;
    return any ? choose_device(found, DeviceChoice::automatic) : found;
  });
  auto const world = make_world(config, process, comm, nullptr);
  auto& communicator = world->all();
  if (comm.rank() == 0 && !communicator.remark().empty())
    log.warning(std::string(communicator.remark()));
  if (comm.rank() == 0 && comm.size() == 1)
    log.warning(
        "one rank has no other to communicate with; start with `mpirun --bind-to none -n 2 ...`");
  auto rows = measure(plan, *world);
  add_reference(plan, static_cast<int>(options.integer("pairs", 0, 1000)), communicator, comm,
                rows);
  if (comm.rank() != 0) return ExitCode::done;
  return report(options, rows,
                {std::string(communicator.backend()), communicator.route(), comm.size()});
}

/// How fast gradients are written in blocks here, on one core, and where that pays. What pays of
/// other codes depends on the model.
ExitCode measure_codes(Options const& options) {
  auto const ranks = static_cast<int>(options.integer("ranks", 1, 1 << 20));
  Table table({{"code", Align::left},
               {"rounding", Align::left},
               {"of fp32 %"},
               {"encode ns/B"},
               {"decode ns/B"},
               {"decode and add ns/B"},
               {"pays below Gbit/s"}});
  auto rows = nlohmann::json::array();
  for (auto const& [code, rounding, speed] : measure_codecs()) {
    if (!Compression{.code = code}.in_blocks()) continue;
    auto const share = share_of_fp32(code);
    auto const bandwidth = pays_below(code, speed, ranks);
    table.add_row(
        {std::string(name_of(code)), std::string(name_of(rounding)), format_number(100 * share, 1),
         format_number(1e9 * speed.encode, 3), format_number(1e9 * speed.decode, 3),
         format_number(1e9 * speed.decode_and_add, 3), format_number(8e-9 * bandwidth, 1)});
    rows.push_back({{"code", name_of(code)},
                    {"rounding", name_of(rounding)},
                    {"share_of_fp32", share},
                    {"encode_s_per_B", speed.encode},
                    {"decode_s_per_B", speed.decode},
                    {"decode_and_add_s_per_B", speed.decode_and_add},
                    {"pays_below_B_per_s", bandwidth}});
  }
  std::cout << "codes of gradients on one core, with error feedback; links of " << ranks
            << " ranks\n"
            << table.render();
  if (options.has("json"))
    replace_file(options.text("json"),
                 nlohmann::json{{"ranks", ranks}, {"codes", rows}}.dump(2) + "\n");
  return ExitCode::done;
}

}  // namespace

void declare_commbench(Options& options) {
  options.add({.name = "ops",
               .value = "LIST",
               .fallback = "all_reduce,reduce_scatter,all_gather,broadcast,send_receive",
               .meaning = "operations, separated by commas; push_pull is a parameter server's"});
  options.add({.name = "begin",
               .letter = 'b',
               .value = "SIZE",
               .fallback = "1K",
               .meaning = "smallest size"});
  options.add({.name = "end",
               .letter = 'e',
               .value = "SIZE",
               .fallback = "256M",
               .meaning = "largest size"});
  options.add(
      {.name = "factor", .letter = 'f', .value = "N", .fallback = "4", .meaning = "between sizes"});
  options.add({.name = "backend",
               .value = "NAME",
               .choices = {"auto", "mpi", "nccl", "inprocess"},
               .fallback = "auto",
               .meaning = "inprocess is threads of one process, without a launcher"});
  options.add({.name = "node-memory",
               .value = "MODE",
               .choices = {"auto", "required", "off"},
               .fallback = "auto",
               .meaning = "as comm.node_memory; off: all by messages"});
  options.add({.name = "algorithm",
               .value = "NAME",
               .choices = {"auto", "flat", "chain"},
               .fallback = "auto",
               .meaning = "as comm.algorithm"});
  options.add({.name = "ranks-per-node",
               .value = "N",
               .fallback = "0",
               .meaning = "as comm.ranks_per_node, for tests"});
  options.add({.name = "pairs",
               .value = "N",
               .fallback = "0",
               .meaning = "compare all_reduce with MPI_Allreduce in so many pairs of runs; the "
                          "median above 1: all_reduce is faster"});
  options.add({.name = "codes",
               .meaning =
                   "instead measure how fast gradients are coded on one core, and tell below "
                   "which bandwidth of a rank's link a code shortens a step"});
  options.add({.name = "ranks",
               .value = "N",
               .fallback = "2",
               .meaning = "of backend inprocess, or among which codes travel"});
  options.add({.name = "json", .value = "FILE", .meaning = "also write the table to this file"});
  options.add_note(
      "Sizes, algbw and busbw are those of nccl-tests; times are not. Here the host waits for each "
      "operation before it begins the next, and the time is that of the slowest rank. nccl-tests "
      "queue all operations, wait once, and show the mean over the ranks: their times are shorter, "
      "above all for small messages.");
  options.add_example("mpirun --bind-to none -n 2 stratagem commbench",
                      "five operations, from 1 KiB to 256 MiB");
  options.add_example(
      "mpirun --bind-to none -n 2 stratagem commbench --ops all_reduce -b 4 -e 16M -f 2 --json "
      "bench.json",
      "one operation, and its table in a file");
  options.add_example("stratagem commbench --codes --ranks 16",
                      "which code pays on which link, among 16 ranks");
  options.add_example("stratagem commbench --backend inprocess --ranks 4 -e 1M",
                      "threads of one process, without a launcher");
}

ExitCode execute_commbench(Options const& options) {
  if (options.has("codes")) return measure_codes(options);
  auto const plan = make_plan(options);
  auto const backend = options.text("backend");
  if (backend == "inprocess") return measure_threads(options, plan);
  auto const node_memory = options.text("node-memory"), algorithm = options.text("algorithm");
  CommConfig config;
  if (backend != "auto") config.backend = backend == "mpi" ? CommBackend::mpi : CommBackend::nccl;
  if (node_memory != "auto")
    config.node.memory = node_memory == "off" ? NodeMemoryMode::off : NodeMemoryMode::required;
  if (algorithm != "auto")
    config.node.algorithm = algorithm == "flat" ? CommAlgorithm::flat : CommAlgorithm::chain;
  config.node.ranks_per_node = static_cast<int>(options.integer("ranks-per-node", 0, 1 << 20));
  return with_mpi(options.common(), options.arguments(), [&](mpi::Comm const& world, Log& log) {
    return measure_processes(options, plan, config, world, log);
  });
}

}  // namespace stratagem::app
