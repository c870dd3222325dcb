#include "predict/calibrate.hpp"

#include <filesystem>
#include <iostream>
#include <optional>

#include "app/commands/plan_study.hpp"
#include "app/configuration.hpp"
#include "base/console/table.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "train/setup.hpp"

namespace stratagem::app {
namespace {

/// The runs that are to be predicted.
std::vector<RunConfig> runs_of(Options const& options) {
  auto const files = options.words();
  if (!names_study(files.front())) {
    auto config = read_configuration(options);
    if (config.run.ranks == 0) config.run.ranks = least_ranks(config.strategy);
    return {config};
  }
  std::vector<RunConfig> runs;
  for (auto& cell : cells_of(files.front(), options.texts("set")))
    runs.push_back(std::move(cell.config));
  return runs;
}

std::string milliseconds(double seconds) {
  return format_number(1000 * seconds, 2);
}

std::string passes_table(Calibration const& calibration) {
  Table table({{"pass", Align::left},
               {"ranks at once"},
               {"samples"},
               {"forward ms"},
               {"backward ms"},
               {"optimizer ms"}});
  for (auto const& pass : calibration.passes)
    for (std::size_t i = 0; i < pass.forward.points().size(); ++i) {
      auto const& forward = pass.forward.points()[i];
      table.add_row({describe(pass.kind), std::to_string(pass.ranks_on_node),
                     format_number(forward.size, 0), milliseconds(forward.seconds),
                     milliseconds(pass.backward.points()[i].seconds),
                     milliseconds(pass.optimizer_s)});
    }
  return table.empty() ? "" : table.render();
}

std::string operations_table(Calibration const& calibration) {
  Table table({{"operation", Align::left}, {"ranks"}, {"1 KiB us"}, {"32 MiB ms"}});
  for (auto const& operation : calibration.operations)
    table.add_row({operation.operation, std::to_string(operation.ranks),
                   format_number(1e6 * operation.time.points().front().seconds, 1),
                   milliseconds(operation.time.points().back().seconds)});
  return table.empty() ? "" : table.render();
}

std::string savings_table(Calibration const& calibration) {
  Table table({{"saving", Align::left}, {"of each"}, {"seconds"}});
  for (auto const& saving : calibration.savings)
    for (auto const& [bytes, seconds] : saving.time.points())
      table.add_row({str(saving.ranks_on_node, saving.ranks_on_node == 1 ? " rank" : " ranks"),
                     format_bytes(bytes), format_number(seconds, 3)});
  return table.render();
}

std::string codings_table(Calibration const& calibration) {
  Table table({{"code", Align::left},
               {"rounding", Align::left},
               {"ranks at once"},
               {"encode ns/B"},
               {"decode ns/B"}});
  for (auto const& [ranks, codecs] : calibration.codings)
    for (auto const& [code, rounding, speed] : codecs)
      table.add_row({std::string(name_of(code)), std::string(name_of(rounding)),
                     std::to_string(ranks), format_number(1e9 * speed.encode, 3),
                     format_number(1e9 * speed.decode, 3)});
  return table.empty() ? "" : table.render();
}

std::string reads_table(Calibration const& calibration) {
  Table table({{"reading", Align::left}, {"input size"}, {"ranks at once"}, {"images/s a thread"}});
  for (auto const& read : calibration.reads)
    table.add_row({read.dataset, std::to_string(read.size), std::to_string(read.ranks_on_node),
                   format_number(1 / read.image_s, 1)});
  return table.empty() ? "" : table.render();
}

std::filesystem::path folder_of(std::filesystem::path const& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace

void declare_calibrate(Options& options) {
  options.add_word({.name = "CONFIG|STUDY", .meaning = config_or_study});
  add_overrides(options);
  options.add(
      {.name = "output",
       .letter = 'o',
       .value = "FILE",
       .fallback = "calibration.json",
       .meaning = "file to write; its results for other kinds and numbers of ranks are kept"});
  options.add_example(
      "mpirun --bind-to none -n 2 stratagem calibrate inputs/smoke/digits-lenet-ddp.yaml",
      "measure passes and communication of such a run on two ranks");
  options.add_example("stratagem calibrate inputs/study/study-mini.yaml -o node.json",
                      "of all models of a study, on one rank, into another file");
}

ExitCode execute_calibrate(Options const& options) {
  auto const path = options.text("output");
  return with_mpi(options.common(), options.arguments(), [&](mpi::Comm const& world, Log& log) {
    std::optional<Calibration> known;
    auto const wanted = on_all_ranks(world, [&] {
      if (std::filesystem::exists(path)) known = read_calibration(path);
      return wanted_passes(runs_of(options));
    });
    auto const measured = calibrate(wanted, std::move(known), folder_of(path), world, log);
    static_cast<void>(from_rank_0(world, [&] {
      replace_file(path, to_json(measured));
      return std::string();
    }));
    if (world.rank() == 0)
      std::cout << passes_table(measured) << operations_table(measured) << codings_table(measured)
                << savings_table(measured) << reads_table(measured) << "wrote " << path << '\n';
    return ExitCode::done;
  });
}

}  // namespace stratagem::app
