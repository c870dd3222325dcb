#include "strategy/shared/compressed.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "strategy/shared/gradient_scale.hpp"

namespace stratagem {
namespace {

void check(Compression const& compression, PlanInput const& input) {
  if (!compression.on()) {
    for (auto const& [given, key] :
         {std::pair(compression.error_feedback, "strategy.error_feedback: true"),
          std::pair(compression.rounding != Rounding::nearest, "strategy.rounding: stochastic")})
      if (given)
        throw Error(ExitCode::usage, str(key, " without strategy.compression"),
                    "gradients are not coded", "leave it out, or choose a code");
    return;
  }
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
}

}  // namespace

void plan_compression(Compression const& compression, SumCode of_sum, PlanInput const& input,
                      StrategyPlan& plan) {
  check(compression, input);
  if (!compression.on()) return;
  plan.numbers_of_serial = false;
  plan.choices["strategy.compression"] = name_of(compression.code);
  plan.choices["strategy.rounding"] = name_of(compression.rounding);
  plan.choices["strategy.error_feedback"] = compression.error_feedback ? "true" : "false";
  plan.hashes.emplace_back("codes", Hash()
                                        .add(name_of(compression.code))
                                        .add(name_of(compression.rounding))
                                        .add(std::uint64_t(compression.error_feedback))
                                        .value());
  if (of_sum == SumCode::plain) plan.choices["strategy.compressed_sums"] = "false";
  if (compression.error_feedback)
    plan.saved_states += plan.workers + (of_sum == SumCode::coded ? 1 : 0);
}

void refuse_codes_on_gpu(gpu::Device const& device) {
  if (device.kind != gpu::DeviceKind::cpu)
    throw AgreedError(ExitCode::environment, "strategy.compression on a GPU",
                      "codes are made on CPUs only", "leave it out, or set run.device: cpu");
}

std::vector<ParameterState> residuals(ParameterLayout const& layout, at::Tensor const& residual,
                                      Communicator const& communicator) {
  std::vector<ParameterState> states;
  for (int worker = 0; worker < communicator.size(); ++worker) {
    states.push_back({.kind = std::string(Compression::residual), .pieces = {}, .worker = worker});
    if (worker == communicator.rank())
      states.back().pieces = pieces_of(layout, {0, layout.size()}, residual);
  }
  return states;
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
