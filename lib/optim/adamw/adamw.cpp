#include "optim/adamw/adamw.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "base/contract.hpp"

namespace stratagem {
namespace {

/// By repeated multiplication alone, which is the same on every machine.
double power(double base, double exponent) {
  double result = 1;
  for (auto left = static_cast<std::int64_t>(exponent); left > 0; left /= 2) {
    if (left % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

/// Of update number `updates`.
template <class T>
AdamwRule<T> make_rule(AdamwConfig const& config, double updates, double lr, double scale,
                       double weight_decay) {
  return {
      .shrink = static_cast<T>(1 - lr * weight_decay),
      .scale = static_cast<T>(scale),
      .beta1 = static_cast<T>(config.beta1),
      .new1 = static_cast<T>(1 - config.beta1),
      .beta2 = static_cast<T>(config.beta2),
      .new2 = static_cast<T>(1 - config.beta2),
      .step = static_cast<T>(lr / (1 - power(config.beta1, updates))),
      .root_unbias = static_cast<T>(1 / std::sqrt(1 - power(config.beta2, updates))),
      .eps = static_cast<T>(config.eps),
  };
}

}  // namespace

ElementRule Adamw::rule(at::ScalarType type, double lr, double scale, double weight_decay) const {
  expects(updates_ > 0, "an update has begun");
  if (type == at::kFloat) return make_rule<float>(config_, updates_, lr, scale, weight_decay);
  return make_rule<double>(config_, updates_, lr, scale, weight_decay);
}

}  // namespace stratagem
