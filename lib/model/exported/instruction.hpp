#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "model/block.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// Values of one pass by ValueId, as far as they are alive.
using Registers = std::vector<c10::IValue>;

/// What a pass depends on, beside values.
struct PassContext {
  Context const& context;
  std::int64_t samples;
  at::ScalarType type;  ///< floating type of activations
  at::Device device;
};

/// A node that is ready to run: its operator was found, and its arguments were matched with the
/// operator's schema.
class Instruction {
 public:
  /// What differs between training and evaluation, or from the user's Python.
  enum class Kind {
    plain,
    convolution,    ///< of two dimensions, by the size of its maps
    batch_norm,     ///< uses running statistics in evaluation
    norm,           ///< of other kinds: computed in fp32 if activations are 16-bit floats
    dropout,        ///< with the project's masks
    attention,      ///< scaled_dot_product_attention, which may drop
    keep_mask,      ///< bernoulli_: a mask of samples that are kept; ones in evaluation
    mask_scale,     ///< the division of such a mask by its probability
    count_batches,  ///< in training only
    update          ///< of a buffer, in training only
  };

  /// Error(bad_data) for an operator that is not known, or that a training here cannot run.
  Instruction(ExportedProgram const& program, ExportedNode const& node);

  Kind kind() const { return kind_; }
  ExportedNode const& node() const { return *node_; }
  /// In-place: writes the value of its first argument.
  bool writes() const { return writes_; }
  /// Its outputs may share memory with `aliased()` arguments.
  std::vector<ValueId> const& aliased() const { return aliased_; }
  /// Whether they do depends on strides, so on the memory format.
  bool copies_by_strides() const;
  std::vector<ValueId> const& inputs() const { return inputs_; }
  std::optional<ValueId> tensor(std::string const& argument) const;
  /// A constant argument, given or by default; NaN: none.
  double number(std::string const& argument) const;
  std::optional<bool> flag(std::string const& argument) const;

  /// Of a mask_scale, count_batches or update, which the constructor alone cannot tell.
  void become(Kind kind) { kind_ = kind; }

  /// Reads its inputs from the registers and writes its outputs there. Error(usage) names the node
  /// if the operator refuses its inputs.
  void run(Registers& registers, PassContext const& pass) const;

 private:
  struct Slot {
    std::size_t position;
    ExportedArgument const* argument;
  };

  void bind();
  void bind_argument(std::size_t position, ExportedArgument const& argument);
  void note_inputs(ExportedArgument const& argument, bool aliased);
  void choose_kind();
  void choose_mask();
  /// Of an operator that can: as its arguments are, it does not.
  bool draws_nothing() const;
  [[noreturn]] void refuse(std::string const& why, std::string const& cure = {}) const;

  template <class T>
  T constant(std::string const& argument) const;
  std::size_t position(std::string const& argument) const;
  bool has(std::string const& argument) const;

  torch::jit::Stack arguments(Registers const& registers, PassContext const& pass) const;
  at::ScalarType floating_type(torch::jit::Stack const& stack, PassContext const& pass) const;
  void unify_types(torch::jit::Stack& stack, PassContext const& pass) const;
  void execute(Registers& registers, PassContext const& pass) const;
  void normalise(torch::jit::Stack& stack, PassContext const& pass) const;
  void use_running_statistics(torch::jit::Stack& stack, std::size_t switch_position,
                              PassContext const& pass) const;
  void call(torch::jit::Stack& stack) const;
  void store(torch::jit::Stack& stack, Registers& registers) const;
  at::Tensor dropped(at::Tensor const& x, PassContext const& pass) const;
  at::Tensor attended(torch::jit::Stack const& stack, PassContext const& pass) const;
  /// What batch_norm() makes of it; nothing where it lacks one of its tensors.
  std::optional<at::Tensor> normed(torch::jit::Stack const& stack, PassContext const& pass) const;
  /// What convolve() makes of it; nothing where it is not for small maps.
  std::optional<at::Tensor> convolved(torch::jit::Stack const& stack, bool fused) const;
  at::Tensor kept_samples(at::Tensor const& target, PassContext const& pass) const;
  bool drops(PassContext const& pass) const;

  ExportedProgram const* program_;
  ExportedNode const* node_;
  std::optional<c10::OperatorHandle> operator_;
  Kind kind_ = Kind::plain;
  bool writes_ = false;
  std::vector<ValueId> inputs_, aliased_;
  torch::jit::Stack template_;  ///< arguments that do not change
  std::vector<Slot> slots_;     ///< and those that do
  double probability_ = 0;      ///< that an element is dropped
  /// Of samples, among the dimensions of what is dropped; its extent may be a multiple of their
  /// number, if it is the first. -1: there is none, and a step has one mask.
  std::int64_t mask_dimension_ = 0;
};

}  // namespace stratagem
