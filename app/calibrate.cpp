#include "train/calibrate.hpp"

#include <filesystem>
#include <iostream>
#include <optional>

#include "app/configuration.hpp"
#include "app/plan_study.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "train/setup.hpp"

namespace stratagem::app {
namespace {

/// The runs that are to be predicted.
std::vector<RunConfig> runs_of(Options const& options) {
  auto const files = options.texts("config");
  if (files.empty() || !names_study(files.front())) {
    auto config = read_configuration(options);
    if (config.run.ranks == 0)
      config.run.ranks = std::holds_alternative<SerialConfig>(config.strategy) ? 1 : 2;
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

std::filesystem::path folder_of(std::filesystem::path const& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace

ExitCode execute_calibrate(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  add_configuration(options);
  options.add()("output,o", text_value("calibration.json"),
                "the file; what it has of other kinds or numbers of ranks stays");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const path = options.text("output");
  return with_mpi(options.common(), arguments, [&](mpi::Comm const& world, Log& log) {
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
      std::cout << passes_table(measured) << operations_table(measured) << savings_table(measured)
                << "wrote " << path << '\n';
    return ExitCode::done;
  });
}

}  // namespace stratagem::app
