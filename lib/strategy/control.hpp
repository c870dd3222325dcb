#pragma once

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "model/block_tape.hpp"
#include "model/model.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/strategy.hpp"

namespace stratagem {

/// Elements set aside for the control record, wherever it travels with others; as many as keep
/// those aligned.
inline constexpr std::int64_t control_room = ParameterLayout::alignment;

/// What all ranks learn in every step, as sums over ranks. Who owns one sends it around once per
/// step, after the last note() and before result().
class ControlRecord {
 public:
  /// `memory`: control_room elements of a floating type.
  explicit ControlRecord(at::Tensor memory);

  void begin(StepOptions const& options);
  /// Of one forward pass, whose outputs the tape still keeps.
  void note(CrossEntropy const& loss, BlockTape const& tape);
  at::Tensor const& memory() const { return memory_; }

  /// After the sum: what the step returns. `finite` is false when some rank's loss was not finite.
  struct Agreed {
    StepResult result;
    bool finite = true;
  };
  Agreed result(Batch const& batch, int ranks, int micro_batches) const;

  /// Of this rank's passes, the first block whose output was not finite; -1 for none. Known at once
  /// on the CPU, never on a GPU.
  int first_bad_block() const { return first_bad_block_; }

 private:
  enum Field : std::int64_t { loss, correct, not_finite, stop, interrupt, save };

  at::Tensor memory_;
  int first_bad_block_ = -1;
};

/// Ends a step whose loss was not finite, on all ranks: those where `first_bad_block` is one name
/// it.
[[noreturn]] void refuse_loss(Model const& model, Communicator& communicator, std::int64_t step,
                              int first_bad_block);

}  // namespace stratagem
