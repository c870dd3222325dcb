#include "optim/optim_config.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stratagem {
namespace {

template <class Rule>
OptimizerConfig with_defaults() {
  return {.lr = Rule::lr, .weight_decay = Rule::weight_decay, .rule = Rule{}};
}

template <std::size_t... I>
std::vector<OptimizerConfig> one_of_each(std::index_sequence<I...>) {
  return {with_defaults<std::variant_alternative_t<I, UpdateRule>>()...};
}

/// Another name puts another optimizer, with its defaults, in the place of this one.
Value optimizer_name(OptimizerConfig& optimizer) {
  std::vector<std::string> names;
  for (auto const& each : all_optimizers()) names.emplace_back(name_of(each));
  return one_of(
      names, [&optimizer] { return std::string(name_of(optimizer)); },
      [&optimizer](std::size_t position) {
        if (position != optimizer.rule.index()) optimizer = all_optimizers()[position];
      });
}

}  // namespace

std::vector<OptimizerConfig> all_optimizers() {
  return one_of_each(std::make_index_sequence<std::variant_size_v<UpdateRule>>());
}

std::string_view name_of(OptimizerConfig const& config) {
  return std::visit([](auto const& rule) { return rule.name; }, config.rule);
}

std::string_view description_of(OptimizerConfig const& config) {
  return std::visit([](auto const& rule) { return rule.description; }, config.rule);
}

std::vector<std::string> state_kinds(OptimizerConfig const& config) {
  return std::visit([](auto const& rule) { return rule.state_kinds(); }, config.rule);
}

std::int64_t state_count(OptimizerConfig const& config) {
  return static_cast<std::int64_t>(state_kinds(config).size());
}

std::vector<std::string> known_state_kinds() {
  std::vector<std::string> known;
  for (auto const& each : all_optimizers())
    std::visit(
        [&](auto const& rule) { known.insert(known.end(), rule.kinds.begin(), rule.kinds.end()); },
        each.rule);
  return known;
}

Keys keys_of(OptimizerConfig& optimizer) {
  Keys keys{
      {"name", optimizer_name(optimizer), "update rule"},
      {"lr", number(optimizer.lr, at_least(0)), "learning rate"},
  };
  std::ranges::move(std::visit([](auto& rule) { return keys_of(rule); }, optimizer.rule),
                    std::back_inserter(keys));
  std::ranges::move(
      Keys{
          {"weight_decay", number(optimizer.weight_decay, at_least(0)),
           "pulls weights to 0: of sgd as a part of the gradient, else beside it"},
          {"decay", choice(optimizer.decay, {"all", "weights"}),
           "what weight_decay is for; weights: not biases and the scales of norms"},
          {"clip_norm", number(optimizer.clip_norm, at_least(0)),
           "largest norm of the whole gradient; 0 does not clip"},
          {"reduction", choice(optimizer.reduction, {"mean", "sum"}), "of the workers' gradients"},
          {"lr_scaling", choice(optimizer.lr_scaling, {"none", "linear", "sqrt"}),
           "of lr, in the number of workers"},
          {"schedule", choice(optimizer.schedule, {"constant", "cosine", "step", "linear", "wsd"}),
           "of lr over the run; wsd: constant, and at the end linear"},
          {"step_size", integer(optimizer.step_size, at_least(1)),
           "of schedule step: between drops [epochs]"},
          {"gamma", number(optimizer.gamma, {0, false, 1, true}),
           "of schedule step: factor of each drop"},
          {"warmup_steps", integer(optimizer.warmup_steps, at_least(0)),
           "linear from lr / warmup_steps"},
          {"final_lr", number(optimizer.final_lr, at_least(0)),
           "of schedules cosine, linear and wsd: what they end with"},
          {"decay_steps", integer(optimizer.decay_steps, at_least(0)),
           "over which they fall; 0: all after the warm-up, of wsd the last tenth of all"},
      },
      std::back_inserter(keys));
  return keys;
}

std::optional<Contradiction> contradiction_in(OptimizerConfig const& config) {
  return std::visit([](auto const& rule) { return contradiction_in(rule); }, config.rule);
}

}  // namespace stratagem
