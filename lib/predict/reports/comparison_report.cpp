#include "predict/reports/comparison_report.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/console/paragraph.hpp"
#include "base/console/table.hpp"
#include "base/text.hpp"
#include "predict/reports/time_report.hpp"

namespace stratagem {
namespace {

/// Less is not worth another strategy.
constexpr double little = 0.1;
/// More are told as a factor.
constexpr double most_percent = 1000;
constexpr int table_width = 79;

/// Of a change by `fraction`.
bool is_factor(double fraction) {
  return 100 * std::abs(fraction) > most_percent;
}
std::string times(double fraction) {
  return str("x", format_number(std::round(1 + std::abs(fraction)), 0));
}
std::string percent(double fraction) {
  if (is_factor(fraction)) return times(fraction);
  return format_number(std::round(100 * fraction) + 0.0, 0) + " %";  // no "-0 %"
}
/// "+50 %", "-3 %", "" for nothing.
std::string change(double fraction) {
  auto const text = percent(fraction);
  return text == "0 %" ? "" : fraction > 0 && !is_factor(fraction) ? "+" + text : text;
}
/// "40 % more than ddp", "x12 as much as ddp".
std::string than_ddp(double fraction) {
  auto const text = percent(std::abs(fraction));
  if (text == "0 %") return "as much as ddp";
  if (is_factor(fraction)) return text + " as much as ddp";
  return str(text, fraction > 0 ? " more" : " less");
}

double over(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

ComparedPlan const* named(Comparison const& comparison, std::string_view name) {
  auto const found = std::ranges::find(comparison.strategies, name, &ComparedPlan::name);
  return found == comparison.strategies.end() || !found->forecast ? nullptr : &*found;
}

// Memory and traffic.

std::string saved_text(ComparedPlan const& one, ComparedPlan const& ddp) {
  if (!ddp.forecast || &one == &ddp) return "";
  auto const before = ddp.forecast->peak_bytes(), saved = before - one.forecast->peak_bytes();
  return str(bytes_text(saved), " ", percent(over(saved, before)));
}

std::string traffic_text(ComparedPlan const& one, ComparedPlan const& ddp) {
  auto const sent = one.busiest_bytes();
  auto const more =
      ddp.forecast ? change(over(sent - ddp.busiest_bytes(), ddp.busiest_bytes())) : "";
  return bytes_text(sent) + (more.empty() ? "" : " " + more);
}

std::string memory_table(Comparison const& comparison, Room const& room) {
  auto const& ddp = comparison.ddp();
  bool const whole = std::ranges::any_of(comparison.strategies, [](auto const& one) {
    return one.forecast && one.forecast->activations;
  });
  std::vector<Table::Column> columns{
      {"strategy", Align::left}, {whole ? "peak" : "lasting"}, {"saves"}, {"sends"}};
  if (room.known()) columns.push_back({"of " + bytes_text(room.bytes), Align::left});
  Table table(columns);
  for (auto const& one : comparison.strategies) {
    std::vector<std::string> row{one.name, "-", "-", "-"};
    if (one.forecast)
      row = {one.name, bytes_text(one.forecast->peak_bytes()), saved_text(one, ddp),
             traffic_text(one, ddp)};
    if (room.known())
      row.push_back(one.forecast ? room.verdict(one.forecast->peak_bytes()) : "cannot do this run");
    table.add_row(row);
  }
  return table.render();
}

/// Below the table: what its columns are.
std::string legend(Comparison const& comparison, Room const& room) {
  auto text = paragraph(
      "per rank that computes, and what the busiest rank sends per step; saves and "
      "+ % against ddp");
  if (room.known() && room.reserve > 0)
    text += paragraph(str(bytes_text(room.reserve),
                          " of a GPU are reserved for its context, libraries and communicator "
                          "(--gpu-reserve)",
                          room.reserve < room.bytes ? "" : ": no less than --gpu-memory"));
  auto const* sync = named(comparison, "ps sync");
  auto const* async = named(comparison, "ps async");
  if (sync == nullptr || async == nullptr) return text;
  auto const& placement = sync->forecast->plan.strategy.placement;
  auto const servers = placement.servers();
  auto const held = [](ComparedPlan const* one) {
    return bytes_text(one->forecast->plan.strategy.servers.memory.total());
  };
  return text +
         paragraph(str("ps takes ", sync->forecast->plan.ranks, " ranks: ", placement.workers(),
                       placement.workers() == 1 ? " worker" : " workers", " and ", servers,
                       servers == 1 ? " server" : " servers", ", which ",
                       servers == 1 ? "holds " : "hold up to ", held(sync), " (sync), ",
                       held(async), " (async) in host memory"));
}

// Time.

bool any_timed(Comparison const& comparison) {
  return std::ranges::any_of(comparison.strategies,
                             [](auto const& one) { return one.forecast && one.forecast->time; });
}

std::string time_table(Comparison const& comparison) {
  if (!any_timed(comparison)) return "";
  auto const& ddp = comparison.ddp();
  Table table({{"strategy", Align::left}, {"step"}, {"to ddp"}, {"of it waits"}, {"run"}});
  for (auto const& one : comparison.strategies) {
    if (!one.forecast || !one.forecast->time) continue;
    auto const step = one.forecast->time->step;
    auto const reference =
        ddp.forecast && ddp.forecast->time ? ddp.forecast->time->step.total() : 0.0;
    table.add_row({one.name, format_duration(step.total()),
                   reference > 0 ? change(step.total() / reference - 1) : "",
                   percent(1 - step.compute_s / step.total()),
                   format_duration(one.forecast->time->run_s)});
  }
  return "\n" + table.render();
}

/// The same for all of them.
std::string times_source(Comparison const& comparison) {
  for (auto const& one : comparison.strategies)
    if (one.forecast && one.forecast->time) return source_text(*one.forecast->time);
  return "";
}

/// Each problem once, with the strategies that have it: all of them need no names.
std::string problems_text(Comparison const& comparison) {
  std::vector<std::pair<std::string, std::vector<std::string>>> problems;
  auto const note = [&](std::string const& problem, std::string const& name) {
    auto found = std::ranges::find(problems, problem, &decltype(problems)::value_type::first);
    if (found == problems.end()) found = problems.insert(found, {problem, {}});
    found->second.push_back(name);
  };
  for (auto const& one : comparison.strategies) {
    if (!one.problem.empty()) note(one.problem, one.name);
    for (auto const& option : one.without) note("without " + option, one.name);
    if (one.forecast && !one.forecast->time_problem.empty())
      note("no time prediction: " + one.forecast->time_problem, one.name);
  }
  std::string text;
  for (auto const& [problem, names] : problems) {
    bool const all = names.size() == comparison.strategies.size();
    text += paragraph((all ? "" : join(names, ", ") + ": ") + problem);
  }
  return text;
}

// Advice.

std::string why_little(Comparison const& comparison, ComparedPlan const& full) {
  auto const& ddp = *comparison.ddp().forecast;
  auto const lasting = ddp.plan.strategy.memory.total();
  if (ddp.is_mostly_activations())
    return str("activations and workspace are ",
               percent(over(ddp.activations->peak, ddp.peak_bytes())),
               " of a rank's memory, which FSDP does not divide");
  if (full.forecast->plan.strategy.memory.total() >= lasting)
    return str(
        "its slots for gathered units are as large as what it divides, as the model is "
        "small: ",
        bytes_text(lasting), " in all");
  return "there are few ranks to divide by, and its slots for gathered units come on top";
}

/// Whether, and by how much.
std::string fsdp_text(Comparison const& comparison) {
  auto const& ddp = comparison.ddp();
  auto const* full = named(comparison, "fsdp full");
  if (!ddp.forecast || full == nullptr || full->forecast->plan.strategy.shares.workers == 1)
    return "";
  auto const before = ddp.forecast->peak_bytes(), saved = before - full->forecast->peak_bytes();
  auto const more = over(full->busiest_bytes() - ddp.busiest_bytes(), ddp.busiest_bytes());
  auto const gain = over(saved, before);
  bool const whole = ddp.forecast->activations.has_value();
  auto const answer = gain < 0 ? "No" : gain < little ? "Hardly" : "Yes";
  auto text =
      str("Would FSDP help? ",
          whole ? str(answer, ": shard full ")
                : "That depends on activations, which were not predicted: of what lasts "
                  "from step to step, shard full ",
          gain < 0 ? "holds " : "saves ", bytes_text(std::abs(saved)),
          gain < 0 ? " more than the " : " of ", bytes_text(before), " per rank",
          gain < 0 ? " of ddp" : "", " (", percent(std::abs(gain)), ") and sends ", than_ddp(more));
  if (gain < little) text += "; " + why_little(comparison, *full);
  return paragraph(text + ".");
}

std::string among(Room const& room) {
  return room.known() ? "fit and train alike" : "train alike";
}

/// Of those that train otherwise and fit.
std::string shorter_otherwise(ComparedPlan const& best, Comparison const& comparison,
                              Room const& room) {
  std::string text;
  for (auto const& one : comparison.strategies)
    if (one.forecast && !one.trains_alike() && room.fits(one.forecast->peak_bytes()) &&
        is_shorter(one, best))
      text += str("; ", one.name, " would take ", format_duration(one.step_s()),
                  ", but trains otherwise");
  return text;
}

std::string time_advice(ComparedPlan const& best, Comparison const& comparison, Room const& room) {
  auto const found = candidates(comparison, room);
  auto const& shortest = *shortest_of(found);
  auto text = str("its step is predicted to take ", format_duration(best.step_s()));
  if (&shortest != &best)
    text += str("; that of ", shortest.name, ", ", format_duration(shortest.step_s()),
                ", is the shortest of those that ", among(room),
                ", but predicted steps that are so close are not told apart, and ", best.name,
                " is simpler");
  else
    text += ", the shortest of those that " + among(room);
  return text + shorter_otherwise(best, comparison, room);
}

/// Less than 1 % is no difference (byte_margin).
std::string byte_advice(Comparison const& comparison, Room const& room) {
  auto text = str("no other that ", room.known() ? "fits and " : "",
                  "trains alike sends over 1 % less from its busiest rank");
  if (any_timed(comparison))
    text +=
        "; their times do not tell them apart, as they are not all predicted from a measured CPU, "
        "for which alone the error of such ratios was recorded";
  return text + (room.known() ? "" : "; with --gpu-memory, those that do not fit are left out");
}

/// Of those that fit, in order; "" for none.
std::string that_fit_otherwise(Comparison const& comparison, Room const& room) {
  std::string names;
  for (auto const& one : comparison.strategies)
    if (one.forecast && !one.trains_alike() && room.fits(one.forecast->peak_bytes()))
      names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

/// Why none is recommended; by how much the nearest misses.
std::string no_advice(Comparison const& comparison, Room const& room) {
  auto const others = that_fit_otherwise(comparison, room);
  auto const but = others.empty() ? "" : str("; without that: ", others);
  auto const* nearest = smallest(comparison);
  if (nearest == nullptr) return str("None that trains like one process can do this run", but, ".");
  return str("None that trains like one process fits: ", nearest->name, " ",
             room.verdict(nearest->forecast->peak_bytes()), but, ".");
}

std::string advice(Comparison const& comparison, Room const& room) {
  auto const* best = recommended(comparison, room);
  if (best == nullptr) return paragraph(no_advice(comparison, room));
  bool const timed = told_apart_by_time(candidates(comparison, room));
  auto const needed = best->forecast->peak_bytes();
  return paragraph(str("Take ", best->name, ": ",
                       timed ? time_advice(*best, comparison, room) : byte_advice(comparison, room),
                       room.tight(needed)
                           ? "; its memory is " + room.verdict(needed) +
                                 ", less than predictions err: try a step of it first"
                           : "",
                       "."));
}

std::string savings_text(Comparison const& comparison, Room const& room) {
  if (comparison.saving_strategy.empty()) return "";
  if (comparison.savings.empty())
    return paragraph("No more micro-batches, recomputation, ranks or smaller batches would help " +
                     comparison.saving_strategy + ".");
  std::vector<Table::Column> columns{{"with", Align::left}, {"peak"}};
  if (room.known()) columns.push_back({"of " + bytes_text(room.bytes), Align::left});
  columns.push_back({"at the price of", Align::left});
  Table table(columns);
  for (auto const& saving : comparison.savings) {
    std::vector<std::string> row{saving.change, bytes_text(saving.peak_bytes)};
    if (room.known()) row.push_back(room.verdict(saving.peak_bytes));
    row.push_back(saving.price_text);
    table.add_row(row);
  }
  return "\n" + paragraph("What makes a rank of " + comparison.saving_strategy + " hold less:") +
         table.render_within(table_width);
}

/// What a rank's share of a step is, and what other numbers of ranks would change in training.
std::string batch_text(Comparison const& comparison) {
  auto const& strategies = comparison.strategies;
  auto const known = std::ranges::find_if(
      strategies, [](auto const& one) { return one.forecast && one.trains_alike(); });
  if (known == strategies.end()) return "";
  auto const& plan = known->forecast->plan;
  bool const of_worker = plan.config.data.batch_per_worker > 0;
  auto text = str("a step takes ", plan.global_batch, " ", plan.samples_name(), ", ",
                  plan.batch_per_rank, " per rank");
  if (plan.samples_per_pass != plan.batch_per_rank)
    text += str(" in passes of ", plan.samples_per_pass);
  if (of_worker)
    text += "; other --ranks change the batch of a step, and the rate stays (batch_per_worker)";
  else if (comparison.mixes_samples)
    text += str("; BatchNorm sees ", plan.samples_per_pass, " of them, with other --ranks others");
  return paragraph(text);
}

}  // namespace

std::string comparison_text(Comparison const& comparison, Room const& room) {
  return memory_table(comparison, room) + legend(comparison, room) + batch_text(comparison) +
         time_table(comparison) + times_source(comparison) + problems_text(comparison) + "\n" +
         fsdp_text(comparison) + advice(comparison, room) + savings_text(comparison, room);
}

namespace {

nlohmann::json savings_json(Comparison const& comparison, Room const& room) {
  auto changes = nlohmann::json::array();
  for (auto const& saving : comparison.savings) {
    nlohmann::json entry{
        {"change", saving.change}, {"peak_B", saving.peak_bytes}, {"price", saving.price_text}};
    if (room.known()) entry["fits"] = room.fits(saving.peak_bytes);
    changes.push_back(entry);
  }
  return {{"strategy", comparison.saving_strategy}, {"changes", changes}};
}

}  // namespace

std::string comparison_json(Comparison const& comparison, Room const& room) {
  auto const& ddp = comparison.ddp();
  auto strategies = nlohmann::json::array();
  for (auto const& one : comparison.strategies) {
    nlohmann::json entry{{"strategy", one.name}};
    if (!one.without.empty()) entry["without"] = one.without;
    if (!one.forecast) {
      entry["problem"] = one.problem;
      strategies.push_back(entry);
      continue;
    }
    entry["ranks"] = one.forecast->plan.ranks;
    entry["lasting_B"] = one.forecast->plan.strategy.memory.total();
    entry["server_B"] = one.forecast->plan.strategy.servers.memory.total();
    entry["busiest_rank_sends_B"] = one.busiest_bytes();
    if (one.forecast->activations) entry["peak_B"] = one.forecast->peak_bytes();
    if (ddp.forecast) {
      entry["saves_B"] = ddp.forecast->peak_bytes() - one.forecast->peak_bytes();
      entry["sends_more_B"] = one.busiest_bytes() - ddp.busiest_bytes();
    }
    if (auto const time = time_json(*one.forecast)) entry["time"] = *time;
    if (room.known()) {
      entry["fits"] = room.fits(one.forecast->peak_bytes());
      entry["room"] = room.json(one.forecast->peak_bytes());
    }
    strategies.push_back(entry);
  }
  auto const* best = recommended(comparison, room);
  nlohmann::json document{{"strategies", strategies}, {"recommended", nullptr}};
  if (best != nullptr) document["recommended"] = best->name;
  if (!comparison.saving_strategy.empty()) document["savings"] = savings_json(comparison, room);
  return document.dump(2) + "\n";
}

}  // namespace stratagem
