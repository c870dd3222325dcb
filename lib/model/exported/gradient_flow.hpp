#pragma once

#include <set>
#include <vector>

#include "model/exported/instruction.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// Which values need gradients: they depend on a parameter that is not frozen. And which parameters
/// get one: the output depends on them. detach(), integers and torch.no_grad() end a dependence.
class GradientFlow {
 public:
  GradientFlow() = default;
  GradientFlow(ExportedProgram const& program, std::vector<Instruction> const& instructions);

  bool needs(ValueId value) const { return needing_.contains(value); }
  /// Parameters alone.
  std::set<ValueId> const& trained() const { return trained_; }

 private:
  std::set<ValueId> needing_, trained_;
};

}  // namespace stratagem
