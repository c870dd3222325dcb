#include "predict/reports/time_report.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/console/paragraph.hpp"
#include "base/console/table.hpp"
#include "base/text.hpp"

namespace stratagem {

std::string source_text(PredictedTime const& time) {
  if (time.published.empty()) return "";
  return paragraph("times are from published figures, not measured: " + time.published);
}

namespace {

/// Of a worker, without waiting for images.
double needed_per_s(Forecast const& forecast) {
  auto const& step = forecast.time->step;
  return static_cast<double>(forecast.plan.batch_per_rank) / (step.total() - step.images_s);
}

std::string reading_text(Forecast const& forecast, Reading const& reading) {
  auto const needed = needed_per_s(forecast);
  auto const rate = reading.images_per_s();
  auto const text =
      str(reading.threads, reading.threads == 1 ? " thread of" : " threads of",
          " a rank: ", format_number(rate, 0), " images/s, ", format_number(needed, 0), " needed");
  if (rate >= needed) return text;
  return str(text,
             "; take data.decode_threads: ", format_number(std::ceil(needed * reading.image_s), 0));
}

}  // namespace

std::string time_text(Forecast const& forecast) {
  if (!forecast.time)
    return forecast.time_problem.empty() ? ""
                                         : "no time prediction: " + forecast.time_problem + "\n";
  auto const& [step, sync_every, epoch_s, run_s, save_s, reading, published, ratio_error] =
      *forecast.time;
  bool const measured = published.empty();
  auto const labels_per_step =
      static_cast<double>(forecast.plan.global_batch * forecast.plan.labels_per_sample());
  Table table({{measured ? "time, predicted" : "time, from published figures", Align::left},
               {measured ? "" : "not measured", Align::left}});
  table.add_row({"step", format_duration(step.total())});
  table.add_row({"  computes", format_duration(step.compute_s)});
  table.add_row({"  waits for communication", format_duration(step.exposed_s)});
  table.add_row({"  waits for cores", format_duration(step.cores_s)});
  if (reading) table.add_row({"  waits for images", format_duration(step.images_s)});
  table.add_row({"epoch", str(format_duration(epoch_s), ", ",
                              format_number(labels_per_step / step.total(), 0), " ",
                              forecast.plan.labels_name(), "/s")});
  table.add_row({"run", str(format_duration(run_s),
                            " with evaluations; ask for --time=", forecast.time->request())});
  table.add_row(
      {"saving", str(save_s > 0 ? format_duration(save_s) : "not known", "; tell the run ",
                     forecast.time->lead_s(), " s before its job ends")});
  if (reading) table.add_row({"reading", reading_text(forecast, *reading)});
  return table.render() + source_text(*forecast.time);
}

std::optional<nlohmann::json> time_json(Forecast const& forecast) {
  if (!forecast.time) {
    if (forecast.time_problem.empty()) return std::nullopt;
    return nlohmann::json{{"problem", forecast.time_problem}};
  }
  auto const& [step, sync_every, epoch_s, run_s, save_s, reading, published, ratio_error] =
      *forecast.time;
  nlohmann::json document{{"step_s", step.total()},
                          {"measured", published.empty()},
                          {"compute_s", step.compute_s},
                          {"exposed_s", step.exposed_s},
                          {"cores_s", step.cores_s},
                          {"epoch_s", epoch_s},
                          {"run_s", run_s},
                          {"save_s", save_s},
                          {"request", forecast.time->request()},
                          {"lead_s", forecast.time->lead_s()}};
  if (ratio_error) document["ratio_error"] = *ratio_error;
  if (reading)
    document["reading"] = {{"images_s", step.images_s},
                           {"images_per_s", reading->images_per_s()},
                           {"needed_per_s", needed_per_s(forecast)},
                           {"threads", reading->threads}};
  return document;
}

}  // namespace stratagem
