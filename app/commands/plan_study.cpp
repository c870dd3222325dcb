#include "app/commands/plan_study.hpp"

#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "app/configuration.hpp"
#include "base/console/paragraph.hpp"
#include "base/console/table.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "config/study_file.hpp"
#include "config/yaml_file.hpp"
#include "predict/reports/plan_report.hpp"
#include "predict/time/step_time.hpp"
#include "study/matrix.hpp"
#include "study/study_directory.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// Models that have been made, for cells that share them.
class Models {
 public:
  Model const& of(RunConfig const& config) {
    auto const input = input_shape(config);
    auto const kind =
        str(config.model.name, ' ', config.model.file, ' ', config.model.num_classes, ' ',
            static_cast<int>(config.model.memory_format), ' ', input.channels, ' ', input.size);
    auto found = made_.find(kind);
    if (found == made_.end()) found = made_.emplace(kind, make_model(config.model, input)).first;
    return found->second;
  }

 private:
  std::map<std::string, Model> made_;
};

/// "-" for what a cell does not have.
std::string bytes_or_dash(std::int64_t bytes) {
  return bytes > 0 ? bytes_text(bytes) : "-";
}

Forecast forecast_of(RunConfig const& config, Model const& model, ActivationPredictor* predictor,
                     Calibration const* calibration) {
  Forecast forecast{make_run_plan(config, model, known_size(config.data), config.run.ranks)};
  if (predictor != nullptr) predict_activations(forecast, model, *predictor);
  if (calibration != nullptr) predict_time(forecast, model, *calibration);
  return forecast;
}

}  // namespace

bool names_study(std::string const& path) {
  if (StudyDirectory::is_one(path)) return true;
  std::error_code ignored;
  return !fs::is_directory(path, ignored) && is_study_text(read_yaml_file(path));
}

std::vector<PlannedCell> cells_of(std::string const& path,
                                  std::vector<std::string> const& overrides) {
  std::vector<PlannedCell> cells;
  if (!StudyDirectory::is_one(path)) {
    auto study = read_study(read_yaml_file(path), path, overrides, known_names(), process_variable);
    for (auto& cell : study.cells) cells.push_back({cell.entry.name, std::move(cell.config)});
    return cells;
  }
  auto const directory = StudyDirectory::open(path);
  for (auto const& entry : directory.cells()) {
    auto const file = directory.run_directory(entry.name) / "config.yaml";
    if (!fs::exists(file)) continue;
    cells.push_back({entry.name, parse_config(read_yaml_file(file), file.string(), overrides,
                                              known_names(), process_variable)});
    cells.back().config.run.ranks = entry.ranks();
  }
  return cells;
}

StudyPlan plan_study(std::vector<PlannedCell> const& cells, ActivationPredictor* predictor,
                     Calibration const* calibration, Room const& room) {
  Models models;
  std::vector<Table::Column> columns{{"cell", Align::left}, {"ranks"},        {"steps"},
                                     {"lasting, worker"},   {"peak, worker"}, {"server"},
                                     {"sent per step"}};
  if (calibration != nullptr) columns.insert(columns.end(), {{"step"}, {"run"}});
  columns.push_back({"verdict", Align::left});
  Table table(columns);
  StudyPlan result;
  double all_s = 0;
  std::map<std::string, int> untimed;  // by problem
  auto document = nlohmann::json::object();
  for (auto const& [name, config] : cells) {
    try {
      auto const& model = models.of(config);
      auto const forecast = forecast_of(config, model, predictor, calibration);
      auto const& plan = forecast.plan;
      document[name] = nlohmann::json::parse(plan_json(forecast, model, room));
      auto const server = plan.strategy.servers.memory.total();
      std::vector<std::string> row{
          name,
          std::to_string(plan.ranks),
          format_count(plan.total_steps),
          bytes_or_dash(plan.strategy.memory.total()),
          forecast.activations ? bytes_or_dash(forecast.peak_bytes()) : "-",
          bytes_or_dash(server),
          bytes_or_dash(plan.strategy.traffic.bytes_sent)};
      if (calibration != nullptr) {
        row.push_back(forecast.time ? format_duration(forecast.time->step.total()) : "-");
        row.push_back(forecast.time ? format_duration(forecast.time->run_s) : "-");
        if (forecast.time) all_s += forecast.time->run_s;
        if (!forecast.time) ++untimed[forecast.time_problem];
      }
      row.push_back(room.known() ? room.verdict(forecast.peak_bytes()) : "can run");
      table.add_row(row);
    } catch (Error const& problem) {
      ++result.refused;
      document[name] = {{"problem", problem.what()}};
      std::vector<std::string> row(columns.size(), "-");
      row[0] = name;
      row[1] = std::to_string(config.run.ranks);
      row.back() = str("refused: ", problem.what());
      table.add_row(row);
    }
  }
  result.text = table.render();
  if (calibration != nullptr)
    result.text += str("one after the other, without starts: ", format_duration(all_s), "\n");
  if (calibration != nullptr && !calibration->published.empty())
    result.text +=
        paragraph("times are from published figures, not measured: " + calibration->published);
  for (auto const& [problem, number] : untimed)
    result.text += str("no time for ", number, number == 1 ? " cell: " : " cells: ", problem, "\n");
  result.json = nlohmann::json{{"cells", document}}.dump(1) + "\n";
  return result;
}

}  // namespace stratagem::app
