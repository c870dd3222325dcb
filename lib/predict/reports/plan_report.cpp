#include "predict/reports/plan_report.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/console/table.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "data/sampler.hpp"
#include "model/exported/remarks.hpp"
#include "predict/reports/time_report.hpp"
#include "strategy/planned_clients.hpp"
#include "strategy/planned_strategy.hpp"

namespace stratagem {
namespace {

std::string input_text(RunPlan const& plan, Model const& model) {
  auto const& input = plan.input;
  if (input.is_text())
    return str("sequences of ", input.tokens, " tokens, of ", format_count(input.vocabulary),
               " different ones");
  return str(
      input.channels, " x ", input.size, " x ", input.size,
      model.memory_format == MemoryFormat::channels_last ? ", channels_last" : ", contiguous");
}

std::string run_table(RunPlan const& plan, Model const& model) {
  auto const& config = plan.config;
  Table table({{"plan", Align::left}, {config.run.name, Align::left}});
  table.add_row(
      {"model", str(model.name, ", ", parameters_text(model), " in ", model.parameter_tensors(),
                    " tensors, ", model.blocks.size(), " blocks")});
  table.add_row({"input", input_text(plan, model)});
  table.add_row(
      {"data", str(config.data.dataset, ", ", format_count(plan.images.train), " training and ",
                   format_count(plan.images.test),
                   config.data.holdout > 0 ? " held-out " : " test ", plan.samples_name())});
  table.add_row(
      {"strategy", str(name_of(config.strategy), ", ", plan.ranks,
                       plan.ranks == 1 ? " rank, " : " ranks, ", plan.strategy.shares.workers,
                       plan.strategy.shares.workers == 1 ? " worker" : " workers")});
  table.add_row(
      {"batch", str(plan.global_batch, " per step, ", plan.batch_per_rank,
                    plan.strategy.placement.servers() == 0 ? " per rank, " : " per worker, ",
                    plan.samples_per_pass, " per pass")});
  table.add_row({"steps", str(format_count(plan.total_steps), ", ",
                              format_count(plan.steps_per_epoch), " per epoch")});
  table.add_row(
      {"sent per step",
       str(format_bytes(static_cast<double>(plan.strategy.traffic.bytes_sent)), " by each rank")});
  table.add_row({"plan hash", Hash().add(plan.strategy.hash()).hex()});
  return table.render();
}

std::string remarks_text(RunPlan const& plan, Model const& model) {
  auto const evaluation = exported_remarks(model).evaluation;
  bool const meant = evaluation.empty() || plan.config.model.frozen;
  return meant ? "" : str("warning: ", evaluation, "\n\n");
}

/// `computes`: this kind of rank runs the model.
std::string memory_table(std::string const& whose, gpu::MemoryUse const& memory,
                         Forecast const& forecast, bool computes) {
  Table table({{"memory per " + whose, Align::left}, {"bytes"}, {""}});
  auto const add = [&table](std::string what, std::int64_t bytes) {
    table.add_row({std::move(what), format_count(bytes), format_bytes(static_cast<double>(bytes))});
  };
  for (std::size_t i = 0; i < gpu::memory_categories; ++i)
    if (memory.bytes[i] > 0) add(std::string(gpu::memory_category_names[i]), memory.bytes[i]);
  add("total, without activations", memory.total());
  if (computes && forecast.activations) {
    add("activations, predicted", forecast.activations->kept);
    add("workspace, predicted", forecast.activations->peak - forecast.activations->kept);
    add("peak, predicted", forecast.peak_bytes());
  }
  return table.render();
}

std::string room_text(Forecast const& forecast, Room const& room) {
  if (!room.known()) return "";
  auto const reserved = room.reserve > 0 ? str(", of which ", bytes_text(room.reserve),
                                               " for its context, libraries and communicator")
                                         : std::string();
  return str("a GPU of ", bytes_text(room.bytes), reserved, ": ",
             room.verdict(forecast.peak_bytes()), "\n");
}

/// 1439 -> "1400", 2.34 -> "2.3".
std::string two_digits(double value) {
  if (value <= 0) return "0";
  auto const digits_of = [](double number) {
    return 1 - static_cast<int>(std::floor(std::log10(number)));
  };
  auto const unit = std::pow(10, -digits_of(value));
  auto const rounded = std::round(value / unit) * unit;
  return format_number(rounded, std::max(digits_of(rounded), 0));
}
std::string about(double seconds) {
  return seconds < 1 ? two_digits(1000 * seconds) + " ms" : two_digits(seconds) + " s";
}

/// What was measured, what follows from it, and a warning when that is bad.
std::string load_text(ServerLoad const& load, bool calibrated) {
  auto text =
      str("busiest server, predicted: about ", two_digits(100 * load.utilisation), " % (",
          calibrated ? "by the calibration " : "measured on this machine: about ",
          about(load.push_s), " per push, a worker's pass about ", about(load.pass_s), ")\n");
  if (load.utilisation > most_utilisation)
    text += str("warning: beyond ", format_number(100 * most_utilisation, 0),
                " % pushes queue up and gradients grow old; take ", load.servers_needed,
                " servers, or fewer workers\n");
  return text;
}

std::string rank_table(RunPlan const& plan) {
  constexpr int shown = 16;
  Table table({{"rank"}, {"role", Align::left}, {"samples of each global batch", Align::left}});
  for (int rank = 0; rank < std::min(plan.ranks, shown); ++rank) {
    auto const slice = plan.strategy.placement.slice_of(rank);
    if (!slice) {
      table.add_row({std::to_string(rank), "server", ""});
    } else if (!plan.strategy.synchronous()) {
      table.add_row({std::to_string(rank), "worker", str(plan.samples_per_pass, " at a time")});
    } else {
      auto const part = slice->of_batch(plan.global_batch);
      table.add_row({std::to_string(rank), "worker", str(part.begin, " to ", part.end - 1)});
    }
  }
  auto text = table.render();
  if (plan.ranks > shown) text += str("and so on to rank ", plan.ranks - 1, "\n");
  return text;
}

nlohmann::json memory_json(gpu::MemoryUse const& memory) {
  auto document = nlohmann::json::object();
  for (std::size_t i = 0; i < gpu::memory_categories; ++i)
    document[std::string(gpu::memory_category_names[i])] = memory.bytes[i];
  return document;
}

}  // namespace

std::string plan_text(Forecast const& forecast, Model const& model, Room const& room) {
  auto const& plan = forecast.plan;
  bool const serves = plan.strategy.placement.servers() > 0;
  auto text = run_table(plan, model) + "\n" + remarks_text(plan, model) +
              memory_table(serves ? "worker" : "rank", plan.strategy.memory, forecast, true) +
              room_text(forecast, room) + "\n";
  if (serves) text += memory_table("server", plan.strategy.servers.memory, forecast, false) + "\n";
  if (auto tables = plan.strategy.strategy->tables(model); !tables.empty()) {
    if (forecast.server_load) tables += load_text(*forecast.server_load, forecast.time.has_value());
    text += tables + "\n";
  }
  if (plan.clients) text += plan.strategy.shares.clients->tables(plan.clients->split()) + "\n";
  text += rank_table(plan);
  auto const time = time_text(forecast);
  if (!time.empty()) text += "\n" + time;
  auto const codes = codes_text(forecast.codes);
  return codes.empty() ? text : text + "\n" + codes;
}

std::string plan_json(Forecast const& forecast, Model const& model, Room const& room) {
  using nlohmann::json;
  auto const& plan = forecast.plan;
  auto const remarks = exported_remarks(model);
  auto ranks = json::array();
  for (int rank = 0; rank < plan.ranks; ++rank) {
    auto const slice = plan.strategy.placement.slice_of(rank);
    json entry{{"rank", rank}, {"role", slice ? "worker" : "server"}};
    if (slice) entry["samples"] = plan.batch_per_rank;
    if (slice && plan.strategy.synchronous())
      entry["first_sample"] = slice->of_batch(plan.global_batch).begin;
    ranks.push_back(entry);
  }
  json document{{"name", plan.config.run.name},
                {"model", model.name},
                {"parameters", model.parameter_count()},
                {"tensors", model.parameter_tensors()},
                {"frozen_parameters", remarks.frozen.elements},
                {"parameters_without_gradient", remarks.unreached.elements},
                {"in_evaluation_mode", remarks.evaluation},
                {"dataset", plan.config.data.dataset},
                {"strategy", std::string(name_of(plan.config.strategy))},
                {"ranks", plan.ranks},
                {"run_ranks", plan.config.run.ranks},
                {"run_device", device_names.at(static_cast<std::size_t>(plan.config.run.device))},
                {"workers", plan.strategy.shares.workers},
                {"global_batch", plan.global_batch},
                {"samples_per_pass", plan.samples_per_pass},
                {"steps_per_epoch", plan.steps_per_epoch},
                {"total_steps", plan.total_steps},
                {"bytes_sent_per_step", plan.strategy.traffic.bytes_sent},
                {"memory_B", memory_json(plan.strategy.memory)},
                {"buckets", json::array()},
                {"rank_map", ranks},
                {"hash", Hash().add(plan.strategy.hash()).hex()}};
  plan.strategy.strategy->add_to(document);
  if (plan.clients) plan.strategy.shares.clients->add_to(document, plan.clients->split());
  if (forecast.activations) {
    document["activations_B"] = forecast.activations->kept;
    document["workspace_B"] = forecast.activations->peak - forecast.activations->kept;
    document["peak_B"] = forecast.peak_bytes();
  }
  if (room.known()) document["room"] = room.json(forecast.peak_bytes());
  if (plan.strategy.placement.servers() > 0)
    document["ps"]["server_memory_B"] = memory_json(plan.strategy.servers.memory);
  if (auto const& load = forecast.server_load)
    document["ps"]["load"] = {{"pass_s", load->pass_s},
                              {"push_s", load->push_s},
                              {"utilisation", load->utilisation},
                              {"servers_needed", load->servers_needed}};
  if (auto const time = time_json(forecast)) document["time"] = *time;
  if (!forecast.codes.empty()) document["codes"] = codes_json(forecast.codes);
  return document.dump(2) + "\n";
}

}  // namespace stratagem
