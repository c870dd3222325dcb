#include "train/plan_report.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "data/sampler.hpp"
#include "strategy/model_layout.hpp"
#include "train/plan_time.hpp"

namespace stratagem {
namespace {

/// "first .. last", or the one name of both.
std::string block_range(int first, int last, Model const& model) {
  auto name = [&](int block) { return model.blocks[static_cast<std::size_t>(block)]->name(); };
  return first == last ? name(first) : name(first) + " .. " + name(last);
}

std::string bytes_text(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string run_table(RunPlan const& plan, Model const& model) {
  auto const& config = plan.config;
  Table table({{"plan", Align::left}, {config.run.name, Align::left}});
  table.add_row(
      {"model", str(model.name, ", ", format_count(model.parameter_count()), " parameters in ",
                    model.parameter_tensors(), " tensors, ", model.blocks.size(), " blocks")});
  table.add_row(
      {"input", str(plan.input.channels, " x ", plan.input.size, " x ", plan.input.size,
                    model.memory_format == MemoryFormat::channels_last ? ", channels_last"
                                                                       : ", contiguous")});
  table.add_row({"data", str(config.data.dataset, ", ", format_count(plan.images.train),
                             " training and ", format_count(plan.images.test), " test images")});
  table.add_row({"strategy", str(name_of(config.strategy), ", ", plan.ranks,
                                 plan.ranks == 1 ? " rank, " : " ranks, ", plan.strategy.workers,
                                 plan.strategy.workers == 1 ? " worker" : " workers")});
  table.add_row({"batch", str(plan.global_batch, " per step, ", plan.batch_per_rank,
                              plan.strategy.servers ? " per worker, " : " per rank, ",
                              plan.samples_per_pass, " per pass")});
  table.add_row({"steps", str(format_count(plan.total_steps), ", ",
                              format_count(plan.steps_per_epoch), " per epoch")});
  table.add_row(
      {"sent per step",
       str(format_bytes(static_cast<double>(plan.strategy.bytes_sent_per_step)), " by each rank")});
  table.add_row({"plan hash", Hash().add(plan.strategy.hash()).hex()});
  return table.render();
}

/// `computes`: this kind of rank runs the model.
std::string memory_table(std::string const& whose, gpu::MemoryUse const& memory,
                         RunPlan const& plan, bool computes) {
  Table table({{"memory per " + whose, Align::left}, {"bytes"}, {""}});
  auto const add = [&table](std::string what, std::int64_t bytes) {
    table.add_row({std::move(what), format_count(bytes), format_bytes(static_cast<double>(bytes))});
  };
  for (std::size_t i = 0; i < gpu::memory_categories; ++i)
    if (memory.bytes[i] > 0) add(std::string(gpu::memory_category_names[i]), memory.bytes[i]);
  add("total, without activations", memory.total());
  if (computes && plan.activations) {
    add("activations, predicted", plan.activations->kept);
    add("workspace, predicted", plan.activations->peak - plan.activations->kept);
    add("peak, predicted", plan.peak_bytes());
  }
  return table.render();
}

std::string room_text(RunPlan const& plan, Room const& room) {
  if (!room.known()) return "";
  auto const reserved = room.reserve > 0 ? str(", of which ", bytes_text(room.reserve),
                                               " for its context, libraries and communicator")
                                         : std::string();
  return str("a GPU of ", bytes_text(room.bytes), reserved, ": ", room.verdict(plan.peak_bytes()),
             "\n");
}

std::string bucket_table(RunPlan const& plan, Model const& model) {
  Table table({{"bucket"}, {"size"}, {"blocks, as the backward pass completes them", Align::left}});
  int number = 0;
  for (auto const& bucket : plan.strategy.buckets.buckets)
    table.add_row(
        {std::to_string(number++),
         format_bytes(static_cast<double>(bucket.range.size() * plan.strategy.element_size)),
         block_range(bucket.last_block, bucket.first_block, model)});
  return table.render();
}

/// "2 slots of 9 MiB", or that there are none.
std::string slots_text(int slots, std::int64_t bytes) {
  if (slots == 0) return "no slots: every unit has room of its own";
  return str(slots, slots == 1 ? " slot of " : " slots of ", bytes_text(bytes));
}

std::string unit_tables(FsdpPlan const& plan, Model const& model) {
  Table summary({{"fsdp", Align::left}, {"", Align::left}});
  summary.add_row({"units", str(plan.units(), ", of which ", plan.rotating,
                                " are gathered into slots, ", plan.prefetch, " ahead")});
  summary.add_row({"parameters", slots_text(plan.parameter_slots, plan.parameter_slot_bytes())});
  summary.add_row({"gradients", slots_text(plan.gradient_slots, plan.gradient_slot_bytes())});
  summary.add_row({"gathered per step", bytes_text(plan.gathered_bytes_sent()) + " sent"});
  summary.add_row({"reduced per step", bytes_text(plan.reduced_bytes_sent()) + " sent"});

  Table table({{"unit"},
               {"gathered"},
               {"shard"},
               {"padding"},
               {"memory", Align::left},
               {"blocks, in forward order", Align::left}});
  for (int i = 0; i < plan.units(); ++i) {
    auto const& unit = plan.unit(i);
    std::int64_t shard = 0, padding = 0;
    for (auto const& chunk : unit.chunks) {
      shard += chunk.shard * size_of(plan.types.master);
      padding += chunk.shard * plan.shards.ranks - chunk.used;
    }
    table.add_row({std::to_string(i), bytes_text(plan.parameter_bytes(i)), bytes_text(shard),
                   bytes_text(padding * size_of(plan.types.master)),
                   plan.rotates(i) ? "slot" : "own",
                   block_range(unit.first_block, unit.last_block, model)});
  }
  return summary.render() + "\n" + table.render();
}

std::string server_table(StrategyPlan const& strategy) {
  auto const& plan = *strategy.servers;
  Table table({{"server"}, {"rank"}, {"chunks"}, {"parameters"}, {"memory"}});
  for (int server = 0; server < static_cast<int>(plan.roles.servers.size()); ++server) {
    auto const s = static_cast<std::size_t>(server);
    table.add_row({std::to_string(server), std::to_string(plan.roles.servers[s]),
                   std::to_string(plan.chunks_of(server).size()),
                   bytes_text(plan.loads[s] * strategy.element_size),
                   bytes_text(strategy.server_bytes[s])});
  }
  return table.render() + str("largest over mean load: ", format_number(plan.imbalance(), 3), "\n");
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
    auto const slice = plan.strategy.slice_of(rank);
    if (!slice) {
      table.add_row({std::to_string(rank), "server", ""});
    } else if (!plan.strategy.synchronous) {
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

nlohmann::json units_json(FsdpPlan const& plan) {
  auto units = nlohmann::json::array();
  for (int i = 0; i < plan.units(); ++i) {
    auto const& unit = plan.unit(i);
    auto chunks = nlohmann::json::array();
    for (auto const& chunk : unit.chunks)
      chunks.push_back({{"low_precision", chunk.low_precision},
                        {"elements", chunk.used},
                        {"shard_elements", chunk.shard},
                        {"owned_begin", chunk.owned}});
    units.push_back({{"first_block", unit.first_block},
                     {"last_block", unit.last_block},
                     {"gathered_B", plan.parameter_bytes(i)},
                     {"rotates", plan.rotates(i)},
                     {"chunks", chunks}});
  }
  return units;
}

nlohmann::json memory_json(gpu::MemoryUse const& memory) {
  auto document = nlohmann::json::object();
  for (std::size_t i = 0; i < gpu::memory_categories; ++i)
    document[std::string(gpu::memory_category_names[i])] = memory.bytes[i];
  return document;
}

}  // namespace

std::string plan_text(RunPlan const& plan, Model const& model, Room const& room) {
  auto const& servers = plan.strategy.servers;
  auto text = run_table(plan, model) + "\n" +
              memory_table(servers ? "worker" : "rank", plan.strategy.memory, plan, true) +
              room_text(plan, room) + "\n";
  if (servers)
    text +=
        memory_table("server", plan.strategy.server_memory, plan, false) + "\n" +
        server_table(plan.strategy) +
        (plan.server_load ? load_text(*plan.server_load, plan.time.has_value()) : std::string()) +
        "\n";
  if (!plan.strategy.buckets.buckets.empty()) text += bucket_table(plan, model) + "\n";
  if (plan.strategy.fsdp) text += unit_tables(*plan.strategy.fsdp, model) + "\n";
  text += rank_table(plan);
  auto const time = time_text(plan);
  return time.empty() ? text : text + "\n" + time;
}

std::string plan_json(RunPlan const& plan, Model const& model, Room const& room) {
  using nlohmann::json;
  json buckets = json::array(), ranks = json::array();
  for (auto const& bucket : plan.strategy.buckets.buckets)
    buckets.push_back({{"begin", bucket.range.begin},
                       {"end", bucket.range.end},
                       {"bytes", bucket.range.size() * plan.strategy.element_size},
                       {"first_block", bucket.first_block},
                       {"last_block", bucket.last_block}});
  for (int rank = 0; rank < plan.ranks; ++rank) {
    auto const slice = plan.strategy.slice_of(rank);
    json entry{{"rank", rank}, {"role", slice ? "worker" : "server"}};
    if (slice) entry["samples"] = plan.batch_per_rank;
    if (slice && plan.strategy.synchronous)
      entry["first_sample"] = slice->of_batch(plan.global_batch).begin;
    ranks.push_back(entry);
  }
  json document{{"name", plan.config.run.name},
                {"model", model.name},
                {"parameters", model.parameter_count()},
                {"tensors", model.parameter_tensors()},
                {"dataset", plan.config.data.dataset},
                {"strategy", std::string(name_of(plan.config.strategy))},
                {"ranks", plan.ranks},
                {"run_ranks", plan.config.run.ranks},
                {"workers", plan.strategy.workers},
                {"global_batch", plan.global_batch},
                {"samples_per_pass", plan.samples_per_pass},
                {"steps_per_epoch", plan.steps_per_epoch},
                {"total_steps", plan.total_steps},
                {"bytes_sent_per_step", plan.strategy.bytes_sent_per_step},
                {"memory_B", memory_json(plan.strategy.memory)},
                {"buckets", buckets},
                {"rank_map", ranks},
                {"hash", Hash().add(plan.strategy.hash()).hex()}};
  if (auto const& fsdp = plan.strategy.fsdp) {
    document["units"] = units_json(*fsdp);
    document["fsdp"] = {{"prefetch", fsdp->prefetch},
                        {"parameter_slots", fsdp->parameter_slots},
                        {"parameter_slot_B", fsdp->parameter_slot_bytes()},
                        {"gradient_slots", fsdp->gradient_slots},
                        {"gradient_slot_B", fsdp->gradient_slot_bytes()},
                        {"scratch_slot_B", fsdp->scratch_slot_bytes()},
                        {"gathered_bytes_per_step", fsdp->gathered_bytes_sent()},
                        {"reduced_bytes_per_step", fsdp->reduced_bytes_sent()}};
  }
  if (plan.activations) {
    document["activations_B"] = plan.activations->kept;
    document["workspace_B"] = plan.activations->peak - plan.activations->kept;
    document["peak_B"] = plan.peak_bytes();
  }
  if (room.known()) document["room"] = room.json(plan.peak_bytes());
  if (auto const& servers = plan.strategy.servers)
    document["ps"] = {{"server_ranks", servers->roles.servers},
                      {"chunks", servers->chunks.size()},
                      {"elements", servers->loads},
                      {"imbalance", servers->imbalance()},
                      {"server_B", plan.strategy.server_bytes},
                      {"server_memory_B", memory_json(plan.strategy.server_memory)}};
  if (auto const& load = plan.server_load)
    document["ps"]["load"] = {{"pass_s", load->pass_s},
                              {"push_s", load->push_s},
                              {"utilisation", load->utilisation},
                              {"servers_needed", load->servers_needed}};
  if (auto const time = time_json(plan)) document["time"] = *time;
  return document.dump(2) + "\n";
}

}  // namespace stratagem
