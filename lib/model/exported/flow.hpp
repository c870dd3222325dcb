#pragma once

#include <vector>

#include "model/exported/instruction.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// Instructions of a program, and which of its values may share memory.
class Flow {
 public:
  /// Without what contributes only to ignored outputs. Error(bad_data) for what cannot be trained:
  /// parameters and buffers that are written otherwise than by batch norms, Bernoulli masks that
  /// nobody scales. The program must outlive this.
  explicit Flow(ExportedProgram const& program);

  ExportedProgram const& program() const { return program_; }
  std::vector<Instruction> const& instructions() const { return instructions_; }
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
  std::size_t group(ValueId value) const;
  void join(ValueId a, ValueId b);
  bool is_counter(ExportedState const* state) const;
  void find_groups();
  void find_writes();
  void find_mask_scales();
  void drop_unneeded();

  ExportedProgram const& program_;
  std::vector<Instruction> instructions_;
  mutable std::vector<std::size_t> parent_;     ///< of each value; groups of values that may alias
  std::vector<ExportedState const*> state_of_;  ///< of each group: a parameter or buffer in it
  std::vector<int> last_write_;                 ///< of each group: instruction; -1: none
};

}  // namespace stratagem
