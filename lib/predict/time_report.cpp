#include "predict/time_report.hpp"

#include <nlohmann/json.hpp>

#include "base/console/paragraph.hpp"
#include "base/console/table.hpp"
#include "base/text.hpp"

namespace stratagem {

std::string source_text(PredictedTime const& time) {
  if (time.published.empty()) return "";
  return paragraph("times are from published figures, not measured: " + time.published);
}

std::string time_text(Forecast const& forecast) {
  if (!forecast.time)
    return forecast.time_problem.empty() ? ""
                                         : "no time prediction: " + forecast.time_problem + "\n";
  auto const& [step, sync_every, epoch_s, run_s, save_s, published] = *forecast.time;
  bool const measured = published.empty();
  Table table({{measured ? "time, predicted" : "time, from published figures", Align::left},
               {measured ? "" : "not measured", Align::left}});
  table.add_row({"step", format_duration(step.total())});
  table.add_row({"  computes", format_duration(step.compute_s)});
  table.add_row({"  waits for communication", format_duration(step.exposed_s)});
  table.add_row({"  waits for cores", format_duration(step.cores_s)});
  table.add_row(
      {"epoch",
       str(format_duration(epoch_s), ", ",
           format_number(static_cast<double>(forecast.plan.global_batch) / step.total(), 0),
           " images/s")});
  table.add_row({"run", str(format_duration(run_s),
                            " with evaluations; ask for --time=", forecast.time->request())});
  table.add_row(
      {"saving", str(save_s > 0 ? format_duration(save_s) : "not known", "; tell the run ",
                     forecast.time->lead_s(), " s before its job ends")});
  return table.render() + source_text(*forecast.time);
}

std::optional<nlohmann::json> time_json(Forecast const& forecast) {
  if (!forecast.time) {
    if (forecast.time_problem.empty()) return std::nullopt;
    return nlohmann::json{{"problem", forecast.time_problem}};
  }
  auto const& [step, sync_every, epoch_s, run_s, save_s, published] = *forecast.time;
  return nlohmann::json{{"step_s", step.total()},
                        {"measured", published.empty()},
                        {"compute_s", step.compute_s},
                        {"exposed_s", step.exposed_s},
                        {"cores_s", step.cores_s},
                        {"epoch_s", epoch_s},
                        {"run_s", run_s},
                        {"save_s", save_s},
                        {"request", forecast.time->request()},
                        {"lead_s", forecast.time->lead_s()}};
}

}  // namespace stratagem
