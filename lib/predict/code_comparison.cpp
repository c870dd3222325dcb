#include "predict/code_comparison.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/console/paragraph.hpp"
#include "base/console/table.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "predict/link.hpp"
#include "predict/time/step_costs.hpp"
#include "predict/time/step_time.hpp"

namespace stratagem {
namespace {

/// What was chosen of another code, as far as this one has it; feedback where none was chosen.
Compression in_code(Code code, Compression const& chosen) {
  Compression compression{.code = code};
  compression.error_feedback = !chosen.on() || chosen.error_feedback || compression.low_rank();
  if (compression.in_blocks()) compression.rounding = chosen.rounding;
  if (compression.sparse()) {
    compression.ratio = chosen.ratio;
    compression.momentum_correction = chosen.momentum_correction;
  }
  if (compression.low_rank()) compression.matrix_rank = chosen.matrix_rank;
  return compression;
}

RunPlan with_compression(RunPlan const& plan, Model const& model, Compression const& compression) {
  auto config = plan.config;
  std::visit(
      [&](auto& strategy) {
        if constexpr (requires { strategy.compression; }) strategy.compression = compression;
      },
      config.strategy);
  return make_run_plan(config, model, plan.images, plan.ranks);
}

/// A plan, and what its step is made of.
struct Costed {
  Costed(RunPlan plan, Model const& model, Calibration const& calibration)
      : plan(std::move(plan)), costs(step_costs(this->plan, model, calibration)) {}

  RunPlan plan;
  StepCosts costs;
};

/// Where the coded step becomes longer than the other, by bandwidth: it falls slower.
class BreakEven {
 public:
  BreakEven(Model const& model, Costed const& plain, Costed const& coded)
      : model_(model), plain_(plain), coded_(coded) {}

  /// [B/s]; within a hundredth.
  double find() const {
    constexpr double least = 1e4, most = 1e13, exact = 1.01;
    if (!pays(least)) return 0;
    if (pays(most)) return std::numeric_limits<double>::infinity();
    auto below = least, above = most;
    while (above / below > exact) {
      auto const middle = std::sqrt(above * below);
      (pays(middle) ? below : above) = middle;
    }
    return below;
  }

 private:
  bool pays(double bandwidth) const {
    return seconds(coded_, bandwidth) < seconds(plain_, bandwidth);
  }

  double seconds(Costed const& one, double bandwidth) const {
    auto const costs = over_link(one.costs, {bandwidth}, one.plan.ranks, one.plan.strategy.traffic);
    return predict_step(one.plan, model_, costs).total();
  }

  Model const& model_;
  Costed const& plain_;
  Costed const& coded_;
};

ComparedCode described(Costed const& one, Model const& model, Compression const& compression) {
  return {.compression = compression,
          .bytes_sent = one.plan.strategy.traffic.bytes_sent,
          .held = one.plan.strategy.memory.total(),
          .step = predict_step(one.plan, model, one.costs)};
}

/// Nothing where the strategy refuses the code, or it was not measured: `plan` tells why where it
/// is chosen.
std::optional<ComparedCode> compared(Costed const& plain, Model const& model,
                                     Compression const& compression,
                                     Calibration const& calibration) try {
  Costed const coded(with_compression(plain.plan, model, compression), model, calibration);
  auto one = described(coded, model, compression);
  one.pays_below = BreakEven(model, plain, coded).find();
  return one;
} catch (Error const&) {
  return std::nullopt;
}

}  // namespace

Compression const* compression_of(StrategyConfig const& strategy) {
  return std::visit(
      [](auto const& config) -> Compression const* {
        if constexpr (requires { config.compression; })
          return &config.compression;
        else
          return nullptr;
      },
      strategy);
}

std::vector<ComparedCode> compare_codes(RunPlan const& plan, Model const& model,
                                        Calibration const& calibration) try {
  auto const* const chosen = compression_of(plan.config.strategy);
  if (chosen == nullptr || plan.ranks == 1 || calibration.on_gpu || calibration.codecs(1).empty())
    return {};
  Costed const plain(with_compression(plan, model, {}), model, calibration);
  std::vector<ComparedCode> codes{described(plain, model, {})};
  for (std::size_t i = 1; i < code_names.size(); ++i) {
    auto const compression = in_code(static_cast<Code>(i), *chosen);
    if (auto const one = compared(plain, model, compression, calibration)) codes.push_back(*one);
  }
  return codes.size() > 1 ? codes : std::vector<ComparedCode>();
} catch (Error const&) {  // of the calibration
  return {};
}

std::string codes_text(std::vector<ComparedCode> const& codes) {
  if (codes.empty()) return {};
  Table table({{"strategy.compression", Align::left},
               {"sent per step"},
               {"held"},
               {"step"},
               {"pays below"}});
  for (auto const& [compression, bytes_sent, held, step, pays_below] : codes) {
    auto const pays = pays_below == 0          ? "never"
                      : std::isinf(pays_below) ? "as measured"
                                               : bandwidth_text(pays_below);
    table.add_row({std::string(name_of(compression.code)), bytes_text(bytes_sent), bytes_text(held),
                   format_duration(step.total()), compression.on() ? pays : ""});
  }
  auto const& first = codes[1].compression;
  return table.render() +
         paragraph(str("codes are lossy: rounding ", name_of(first.rounding),
                       first.error_feedback ? ", with" : ", without",
                       " error feedback; a code pays on links of a rank that are slower, or on "
                       "what was measured too, if "
                       "the accuracy that it costs is no matter"));
}

nlohmann::json codes_json(std::vector<ComparedCode> const& codes) {
  auto list = nlohmann::json::array();
  for (auto const& [compression, bytes_sent, held, step, pays_below] : codes) {
    list.push_back({{"compression", name_of(compression.code)},
                    {"rounding", name_of(compression.rounding)},
                    {"error_feedback", compression.error_feedback},
                    {"bytes_sent_per_step", bytes_sent},
                    {"lasting_B", held},
                    {"step_s", step.total()}});
    if (!compression.on()) continue;
    // Infinite, it is not a number of JSON.
    list.back()["pays_below_B_per_s"] =
        std::isinf(pays_below) ? nlohmann::json() : nlohmann::json(pays_below);
  }
  return list;
}

}  // namespace stratagem
