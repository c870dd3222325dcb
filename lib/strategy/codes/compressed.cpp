#include "strategy/codes/compressed.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "strategy/shared/gradient_scale.hpp"

namespace stratagem {
namespace {

/// Settings of codes beside one that does not have them, or beside none.
void check_settings(Compression const& compression) {
  Compression const defaults;
  struct Setting {
    bool given, known;
    char const* text;
  };
  for (auto const& [given, known, text] :
       {Setting{compression.error_feedback, compression.on(), "strategy.error_feedback: true"},
        Setting{compression.rounding != defaults.rounding, compression.in_blocks(),
                "strategy.rounding: stochastic"},
        Setting{compression.ratio != defaults.ratio, compression.sparse(), "strategy.ratio"},
        Setting{compression.matrix_rank != defaults.matrix_rank, compression.low_rank(),
                "strategy.matrix_rank"},
        Setting{compression.momentum_correction, compression.sparse(),
                "strategy.momentum_correction: true"}}) {
    if (!given || known) continue;
    if (!compression.on())
      throw Error(ExitCode::usage, str(text, " without strategy.compression"),
                  "gradients are not coded", "leave it out, or choose a code");
    throw Error(ExitCode::usage,
                str(text, " together with strategy.compression: ", name_of(compression.code)),
                "that code does not have it", "leave it out, or choose another code");
  }
}

void check_momentum_correction(Compression const& compression, OptimizerConfig const& optimizer) {
  auto const refuse = [](std::string const& what, std::string const& cure) {
    throw Error(
        ExitCode::usage, "strategy.momentum_correction: true " + what,
        "workers apply the momentum of SGD to their own gradients, and keep what is not sent",
        cure);
  };
  if (!compression.error_feedback)
    refuse("without strategy.error_feedback: true", "set both, or neither");
  auto const* sgd = std::get_if<SgdConfig>(&optimizer.rule);
  if (sgd == nullptr)
    refuse(str("together with optimizer.name: ", name_of(optimizer)), "take sgd, or leave it out");
  else if (sgd->momentum == 0)
    refuse("together with optimizer.momentum: 0", "leave it out, or choose a momentum");
  else if (sgd->nesterov)
    refuse("together with optimizer.nesterov: true", "leave one of the two out");
}

void check(Compression const& compression, PlanInput const& input) {
  check_settings(compression);
  if (!compression.on()) return;
  auto const refuse = [&](std::string const& other, std::string const& why) {
    throw Error(ExitCode::usage,
                str("strategy.compression: ", name_of(compression.code), " together with ", other),
                why, "leave one of the two out");
  };
  if (input.precision.compute == Precision::fp64)
    refuse("precision.compute: fp64", "codes are made of fp32 gradients");
  if (scales_loss(input.precision))
    refuse("precision.loss_scale: dynamic",
           "a step that overflows would leave its residuals behind");
  if (compression.low_rank() && !compression.error_feedback)
    throw Error(ExitCode::usage,
                "strategy.compression: low_rank without strategy.error_feedback: true",
                "what the products of two thin matrices lose has to be added to the next gradient",
                "set it to true");
  if (compression.momentum_correction) check_momentum_correction(compression, input.optimizer);
}

/// What the code depends on, by key.
std::map<std::string, std::string> choices_of(Compression const& compression) {
  auto const yes_or_no = [](bool value) { return value ? "true" : "false"; };
  std::map<std::string, std::string> choices{
      {"strategy.compression", std::string(name_of(compression.code))},
      {"strategy.rounding", std::string(name_of(compression.rounding))},
      {"strategy.error_feedback", yes_or_no(compression.error_feedback)}};
  if (compression.sparse()) {
    choices["strategy.ratio"] = shortest(compression.ratio);
    choices["strategy.momentum_correction"] = yes_or_no(compression.momentum_correction);
  }
  if (compression.low_rank())
    choices["strategy.matrix_rank"] = std::to_string(compression.matrix_rank);
  return choices;
}

/// States that a checkpoint has for each parameter because of the code.
int saved_states_of(Compression const& compression, SumCode of_sum, int workers) {
  if (!compression.error_feedback) return 0;
  auto const corrected = compression.momentum_correction ? workers - 1 : 0;  // not the optimizer's
  auto const of_all =
      compression.low_rank() || (compression.in_blocks() && of_sum == SumCode::coded);
  return workers + corrected + (of_all ? 1 : 0);
}

}  // namespace

void plan_compression(Compression const& compression, SumCode of_sum, PlanInput const& input,
                      StrategyPlan& plan) {
  check(compression, input);
  if (!compression.on()) return;
  Hash hash;
  for (auto& [key, choice] : choices_of(compression)) {
    hash.add(key).add(choice);
    plan.numbers.choices[key] = choice;
  }
  plan.hashes.emplace_back("codes", hash.value());
  if (of_sum == SumCode::plain) plan.numbers.choices["strategy.compressed_sums"] = "false";
  plan.saved.states += saved_states_of(compression, of_sum, plan.shares.workers);
  if (compression.momentum_correction)
    plan.memory[gpu::MemoryCategory::optimizer] =
        state_count(optimizer_of(compression, input.optimizer)) * input.layout.size() *
        plan.element_size;
}

void plan_parameter_compression(Code code, PlanInput const& input, StrategyPlan& plan) {
  if (code == Code::none) return;
  if (input.precision.compute == Precision::fp64)
    throw Error(ExitCode::usage,
                str("strategy.parameter_compression: ", name_of(code),
                    " together with precision.compute: fp64"),
                "codes are made of fp32 numbers", "leave one of the two out");
  plan.numbers.choices["strategy.parameter_compression"] = name_of(code);
  plan.hashes.emplace_back("code of parameters", Hash().add(name_of(code)).value());
}

void refuse_codes_without_blocks(Compression const& compression, std::string_view strategy) {
  if (compression.on() && !compression.in_blocks())
    throw Error(ExitCode::usage,
                str("strategy.compression: ", name_of(compression.code), " together with strategy ",
                    strategy),
                "it sends ranges of all gradients, which are written in blocks",
                "take such a code, or strategy ddp");
}

OptimizerConfig optimizer_of(Compression const& compression, OptimizerConfig optimizer) {
  if (compression.momentum_correction) std::get<SgdConfig>(optimizer.rule).momentum = 0;
  return optimizer;
}

void refuse_codes_on_gpu(gpu::Device const& device) {
  if (device.kind != gpu::DeviceKind::cpu)
    throw AgreedError(ExitCode::environment, "strategy.compression on a GPU",
                      "codes are made on CPUs only", "leave it out, or set run.device: cpu");
}

std::vector<ParameterState> of_each_worker(std::string_view kind, ParameterLayout const& layout,
                                           at::Tensor const& own,
                                           Communicator const& communicator) {
  return of_each_worker(kind, layout, own, communicator.size(), communicator.rank());
}

std::vector<ParameterState> of_each_worker(std::string_view kind, ParameterLayout const& layout,
                                           at::Tensor const& own, int workers, int number) {
  std::vector<ParameterState> states;
  for (int worker = 0; worker < workers; ++worker) {
    if (worker == number)
      states.push_back(of_worker(kind, layout, own, worker));
    else
      states.push_back({.kind = std::string(kind), .pieces = {}, .worker = worker});
  }
  return states;
}

ParameterState of_worker(std::string_view kind, ParameterLayout const& layout,
                         at::Tensor const& own, int worker) {
  return {.kind = std::string(kind),
          .pieces = pieces_of(layout, {0, layout.size()}, own),
          .worker = worker};
}

void clear_padding(ParameterLayout const& layout, FlatRange range, std::span<float> values) {
  if (values.empty()) return;
  for (auto const& entry : layout.entries()) {
    auto const end = entry.offset + entry.spec.numel();
    auto const gap = overlap({end, ParameterLayout::aligned(end)}, range);
    if (gap.size() > 0) std::fill_n(values.begin() + (gap.begin - range.begin), gap.size(), 0.0F);
  }
}

std::span<float> numbers_of(at::Tensor const& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace stratagem
