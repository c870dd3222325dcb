#include "optim/adamw/adamw_config.hpp"

namespace stratagem {
namespace {

/// A quotient of two small numbers in fp32 has to stay one.
constexpr double least_eps = 1e-16;

}  // namespace

Keys keys_of(AdamwConfig& adamw) {
  return {
      {"beta1", number(adamw.beta1, {0, true, 1, false}), "of the running mean of gradients"},
      {"beta2", number(adamw.beta2, {0, true, 1, false}), "of the running mean of their squares"},
      {"eps", number(adamw.eps, at_least(least_eps)),
       "added to the root of the mean square, by which a step is divided"},
  };
}

std::optional<Contradiction> contradiction_in(AdamwConfig const& /*adamw*/) {
  return std::nullopt;
}

}  // namespace stratagem
