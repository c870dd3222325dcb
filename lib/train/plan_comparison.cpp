#include "train/plan_comparison.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/table.hpp"
#include "base/text.hpp"

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

std::string advice(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  auto const* best = recommended(compared, room);
  if (best == nullptr)
    return "none of them fits: take more ranks, a smaller batch, or model.recompute\n";
  auto text = str("take ", best->name, ": ");
  if (room == 0)
    text +=
        "no other sends less from its busiest rank; with --gpu-memory, those that do not fit are "
        "left out\n";
  else if (best == &compared.front())
    text += "it fits, and no other sends less from its busiest rank\n";
  else
    text += "of those that fit and train alike, its busiest rank sends least\n";
  return text;
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
                                             int workers, ActivationPredictor* predictor) {
  std::vector<ComparedPlan> compared;
  for (auto const& alternative : alternatives(config)) {
    auto chosen = config;
    chosen.strategy = alternative.strategy;
    chosen.run.ranks = workers + alternative.servers;
    ComparedPlan one{.name = alternative.name};
    try {
      one.plan = make_run_plan(chosen, model, published_size(config.data), chosen.run.ranks);
      if (predictor != nullptr) predict_activations(*one.plan, model, *predictor);
    } catch (Error const& problem) {
      one.problem = problem.what();
    }
    compared.push_back(std::move(one));
  }
  return compared;
}

ComparedPlan const* recommended(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  ComparedPlan const* best = nullptr;
  for (auto const& one : compared) {
    if (!one.plan || !trains_alike(one) || !fits(one, room)) continue;
    // A per cent is rounding: of paddings, of what travels with the last bucket.
    if (best == nullptr || one.busiest_bytes() * 101 / 100 < best->busiest_bytes()) best = &one;
  }
  return best;
}

std::string comparison_text(std::vector<ComparedPlan> const& compared, std::int64_t room) {
  Table table({{"strategy", Align::left},
               {"ranks"},
               {"lasting, worker"},
               {"peak, worker"},
               {"server"},
               {"sent per step, busiest rank"},
               {"verdict", Align::left}});
  std::string problems;
  for (auto const& one : compared) {
    if (!one.plan) {
      table.add_row({one.name, "-", "-", "-", "-", "-", "cannot do this run"});
      problems += one.name + ": " + one.problem + "\n";
      continue;
    }
    auto const& plan = *one.plan;
    auto const server = plan.strategy.server_memory.total();
    table.add_row({one.name, std::to_string(plan.ranks), bytes_text(plan.strategy.memory.total()),
                   plan.activations ? bytes_text(plan.peak_bytes()) : "-",
                   server > 0 ? bytes_text(server) : "-", bytes_text(one.busiest_bytes()),
                   room == 0         ? "-"
                   : fits(one, room) ? "fits"
                                     : "does not fit"});
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
