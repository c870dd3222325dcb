#pragma once

#include <set>
#include <vector>

#include "model/exported/gradient_flow.hpp"
#include "model/exported/instruction.hpp"
#include "model/exported/program.hpp"
#include "model/exported/value_groups.hpp"

namespace stratagem {

/// Instructions of a program, and which of its values may share memory.
class Flow {
 public:
  /// Without what contributes only to ignored outputs. Error(bad_data) for what cannot be trained:
  /// parameters that are written, buffers that get what needs a gradient, Bernoulli masks that
  /// nobody scales. The program must outlive this.
  explicit Flow(ExportedProgram const& program);

  ExportedProgram const& program() const { return program_; }
  std::vector<Instruction> const& instructions() const { return instructions_; }
  /// Where gradients flow.
  GradientFlow const& gradients() const { return gradients_; }
  /// Buffers that nodes write, apart from norms and what counts their passes.
  std::set<ValueId> updated() const;
  /// The first of them on which the output depends; null: none.
  ExportedState const* read_back() const;
  /// Values that may share memory.
  bool may_alias(ValueId a, ValueId b) const { return group(a) == group(b); }
  /// Whether a node overwrites the model's input.
  bool writes_input() const { return last_write_[group(program_.input)] >= 0; }

  /// After which instructions the graph can be cut, in order: there, only `value` is still needed
  /// apart from state that is used on one side only and from constants. It is floating, its first
  /// dimension is that of the samples, and nothing later writes it.
  struct Cut {
    int after;
    ValueId value;
  };
  std::vector<Cut> cuts() const;

 private:
  std::size_t group(ValueId value) const { return groups_.of(value); }
  bool is_buffer(ExportedState const* state) const;
  bool is_counter(ExportedState const* state) const;
  void find_groups();
  void find_writes();
  void find_mask_scales();
  void drop_unneeded();
  void check_updates() const;

  ExportedProgram const& program_;
  std::vector<Instruction> instructions_;
  ValueGroups groups_;                          ///< of values that may share memory
  std::vector<ExportedState const*> state_of_;  ///< of each group: a parameter or buffer in it
  std::vector<int> last_write_;                 ///< of each group: instruction; -1: none
  GradientFlow gradients_;
};

}  // namespace stratagem
