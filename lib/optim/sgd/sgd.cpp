#include "optim/sgd/sgd.hpp"

#include <ATen/ATen.h>

namespace stratagem {
namespace {

template <class T>
ElementRule make_rule(SgdConfig const& config, double lr, double scale, double weight_decay) {
  SgdFactors<T> const factors{static_cast<T>(lr), static_cast<T>(config.momentum),
                              static_cast<T>(weight_decay), static_cast<T>(scale)};
  if (config.momentum == 0) return SgdWithoutMomentum<T>{factors};
  if (config.nesterov) return NesterovSgd<T>{factors};
  return SgdWithMomentum<T>{factors};
}

}  // namespace

ElementRule Sgd::rule(at::ScalarType type, double lr, double scale, double weight_decay) const {
  return type == at::kFloat ? make_rule<float>(config_, lr, scale, weight_decay)
                            : make_rule<double>(config_, lr, scale, weight_decay);
}

}  // namespace stratagem
