#include "train/plan_comparison.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "train/plan_time.hpp"
#include "train/step_time.hpp"

namespace stratagem {
namespace {

struct Alternative {
  std::string name;
  StrategyConfig strategy;
  int servers = 0;
};

/// What `config` says of this kind of strategy, or its defaults.
template <class Kind>
Kind settings_of(RunConfig const& config) {
  auto const* chosen = std::get_if<Kind>(&config.strategy);
  return chosen == nullptr ? Kind{} : *chosen;
}

/// The simplest first.
std::vector<Alternative> alternatives(RunConfig const& config) {
  std::vector<Alternative> all{{"ddp", settings_of<DdpConfig>(config)}};
  for (auto const& [shard, name] : {std::pair{Shard::optimizer, "fsdp, shard optimizer"},
                                    {Shard::gradients, "fsdp, shard gradients"},
                                    {Shard::full, "fsdp, shard full"}}) {
    auto fsdp = settings_of<FsdpConfig>(config);
    fsdp.shard = shard;
    if (shard != Shard::full) {
      fsdp.reshard_after_forward = true;
      fsdp.keep_units = 0;
    }
    all.push_back({name, fsdp});
  }
  for (auto const& [mode, name] :
       {std::pair{PsMode::sync, "ps, mode sync"}, {PsMode::async, "ps, mode async"}}) {
    auto const given = settings_of<PsConfig>(config);
    PsConfig const ps{.servers = given.servers,
                      .chunk_mb = given.chunk_mb,
                      .transport = given.transport,
                      .mode = mode};
    all.push_back({name, ps, ps.servers});
  }
  return all;
}

bool trains_alike(ComparedPlan const& compared) {
  auto const* ps = std::get_if<PsConfig>(&compared.plan->config.strategy);
  return ps == nullptr || ps->mode == PsMode::sync;
}

bool fits(ComparedPlan const& compared, std::int64_t room) {
  return room == 0 || compared.plan->largest_bytes() <= room;
}

std::string bytes_text(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

using Candidates = std::vector<ComparedPlan const*>;

/// That train alike and fit, the simplest first.
Candidates candidates(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  Candidates found;
  for (auto const& one : compared)
    if (one.plan && trains_alike(one) && fits(one, room)) found.push_back(&one);
  return found;
}

bool all_timed(Candidates const& found) {
  return std::ranges::all_of(found, [](auto const* one) { return one->plan->time.has_value(); });
}

double step_of(ComparedPlan const& one) {
  return one.plan->time->step.total();
}

/// Beyond what rounding is in bytes, of paddings and what travels with the last bucket, and the
/// error of a prediction is between strategies.
constexpr double byte_margin = 1.01, time_margin = 1.05;

/// Step, what of it is no computation, and run.
void add_times(std::vector<std::string>& row, RunPlan const& plan) {
  if (!plan.time) {
    row.insert(row.end(), {"-", "-", "-"});
    return;
  }
  auto const& step = plan.time->step;
  row.insert(row.end(), {format_duration(step.total()),
                         format_number(100 * (1 - step.compute_s / step.total()), 0) + " %",
                         format_duration(plan.time->run_s)});
}

std::string time_advice(ComparedPlan const& best, std::vector<ComparedPlan> const& compared,
                        std::int64_t room) {
  auto const found = candidates(compared, room);
  auto const& shortest =
      **std::ranges::min_element(found, {}, [](auto const* one) { return step_of(*one); });
  auto text = str("its step is predicted to take ", format_duration(step_of(best)));
  if (&shortest == &best)
    text += str(", the shortest of those that ", room == 0 ? "" : "fit and ", "train alike");
  else
    text += str(", within 5 % of the shortest (", shortest.name, "), and it is simpler");
  for (auto const& one : compared)
    if (one.plan && one.plan->time && !trains_alike(one) && fits(one, room) &&
        step_of(one) * time_margin < step_of(best))
      text += str("; ", one.name, " would take ", format_duration(step_of(one)),
                  ", but trains otherwise");
  return text;
}

std::string byte_advice(ComparedPlan const& best, std::vector<ComparedPlan> const& compared,
                        std::int64_t room) {
  if (room == 0)
    return "no other sends less from its busiest rank; with --gpu-memory, those that do not fit "
           "are left out";
  if (&best == &compared.front()) return "it fits, and no other sends less from its busiest rank";
  return "of those that fit and train alike, its busiest rank sends least";
}

std::string advice(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  auto const* best = recommended(compared, room);
  if (best == nullptr)
    return "none of them fits: take more ranks, a smaller batch, or model.recompute\n";
  bool const timed = all_timed(candidates(compared, room));
  return str("take ", best->name, ": ",
             timed ? time_advice(*best, compared, room) : byte_advice(*best, compared, room), "\n");
}

}  // namespace

std::int64_t ComparedPlan::busiest_bytes() const {
  auto const& strategy = plan->strategy;
  auto sent = strategy.bytes_sent_per_step;
  if (strategy.servers)
    for (auto const elements : strategy.servers->loads)
      sent = std::max(sent, elements * strategy.element_size * strategy.workers);
  return sent;
}

std::vector<ComparedPlan> compare_strategies(RunConfig const& config, Model const& model,
                                             int workers, ActivationPredictor* predictor,
                                             Calibration const* calibration) {
  std::vector<ComparedPlan> compared;
  for (auto const& alternative : alternatives(config)) {
    auto chosen = config;
    chosen.strategy = alternative.strategy;
    chosen.run.ranks = workers + alternative.servers;
    ComparedPlan one{.name = alternative.name};
    try {
      one.plan = make_run_plan(chosen, model, published_size(config.data), chosen.run.ranks);
      if (predictor != nullptr) predict_activations(*one.plan, model, *predictor);
      if (calibration != nullptr) predict_time(*one.plan, model, *calibration);
    } catch (Error const& problem) {
      one.problem = problem.what();
    }
    compared.push_back(std::move(one));
  }
  return compared;
}

ComparedPlan const* recommended(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  auto const found = candidates(compared, room);
  if (found.empty()) return nullptr;
  bool const timed = all_timed(found);
  auto const cost = [&](ComparedPlan const* one) {
    return timed ? step_of(*one) : static_cast<double>(one->busiest_bytes());
  };
  auto const least = std::ranges::min(found, {}, cost);
  auto const enough = cost(least) * (timed ? time_margin : byte_margin);
  return *std::ranges::find_if(found, [&](auto const* one) { return cost(one) <= enough; });
}

std::string comparison_text(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  bool const timed = std::ranges::any_of(compared, [](auto const& one) {
    return one.plan && (one.plan->time || !one.plan->time_problem.empty());
  });
  std::vector<Table::Column> columns{
      {"strategy", Align::left}, {"ranks"},  {"lasting, worker"},
      {"peak, worker"},          {"server"}, {"sent per step, busiest rank"}};
  if (timed) columns.insert(columns.end(), {{"step"}, {"of it waits"}, {"run"}});
  columns.push_back({"verdict", Align::left});
  Table table(columns);
  std::string problems;
  for (auto const& one : compared) {
    if (!one.plan) {
      std::vector<std::string> row(columns.size(), "-");
      row.front() = one.name;
      row.back() = "cannot do this run";
      table.add_row(row);
      problems += one.name + ": " + one.problem + "\n";
      continue;
    }
    auto const& plan = *one.plan;
    auto const server = plan.strategy.server_memory.total();
    std::vector<std::string> row{one.name,
                                 std::to_string(plan.ranks),
                                 bytes_text(plan.strategy.memory.total()),
                                 plan.activations ? bytes_text(plan.peak_bytes()) : "-",
                                 server > 0 ? bytes_text(server) : "-",
                                 bytes_text(one.busiest_bytes())};
    if (timed) add_times(row, plan);
    if (!plan.time_problem.empty()) problems += one.name + ": no time: " + plan.time_problem + "\n";
    row.push_back(room == 0 ? "-" : fits(one, room) ? "fits" : "does not fit");
    table.add_row(row);
  }
  return table.render() + problems + advice(compared, room);
}

std::string comparison_json(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  auto strategies = nlohmann::json::array();
  for (auto const& one : compared) {
    nlohmann::json entry{{"strategy", one.name}};
    if (one.plan) {
      entry["ranks"] = one.plan->ranks;
      entry["lasting_B"] = one.plan->strategy.memory.total();
      entry["server_B"] = one.plan->strategy.server_memory.total();
      entry["busiest_rank_sends_B"] = one.busiest_bytes();
      if (one.plan->activations) entry["peak_B"] = one.plan->peak_bytes();
      if (auto const time = time_json(*one.plan)) entry["time"] = *time;
      if (room > 0) entry["fits"] = fits(one, room);
    } else {
      entry["problem"] = one.problem;
    }
    strategies.push_back(entry);
  }
  auto const* best = recommended(compared, room);
  nlohmann::json document{{"strategies", strategies}, {"recommended", nullptr}};
  if (best != nullptr) document["recommended"] = best->name;
  return document.dump(2) + "\n";
}

}  // namespace stratagem
