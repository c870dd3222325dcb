#pragma once

#include <variant>

#include "optim/adamw/adamw_rule.hpp"
#include "optim/sgd/sgd_rule.hpp"

namespace stratagem {

/// Of each optimizer, for one update: rule(p, g, state...) with an element of the parameters, of
/// the gradients, and of each kind of state.
using ElementRule =
    std::variant<SgdWithoutMomentum<float>, SgdWithoutMomentum<double>, SgdWithMomentum<float>,
                 SgdWithMomentum<double>, NesterovSgd<float>, NesterovSgd<double>, AdamwRule<float>,
                 AdamwRule<double>>;

/// Where the elements that an update reads and writes begin: of the rule's type, without gaps.
struct UpdatedMemory {
  static constexpr int most_kinds = 2;

  void* parameters;
  void const* gradients;
  void* state[most_kinds];  ///< by kind
};

/// A copy of the parameters that an update renews as it goes, rounded to the nearest.
struct RoundedCopy {
  enum class Type { bf16, fp16 };

  void* memory = nullptr;  ///< null: there is none
  Type type = Type::bf16;
};

}  // namespace stratagem
