#include "optim/sgd/sgd_config.hpp"

namespace stratagem {

Keys keys_of(SgdConfig& sgd) {
  return {
      {"momentum", number(sgd.momentum, {0, true, 1, false}), "0: none"},
      {"nesterov", flag(sgd.nesterov), "needs momentum"},
  };
}

std::optional<Contradiction> contradiction_in(SgdConfig const& sgd) {
  if (!sgd.nesterov || sgd.momentum > 0) return std::nullopt;
  return Contradiction{"nesterov", "is true, which needs optimizer.momentum > 0"};
}

}  // namespace stratagem
