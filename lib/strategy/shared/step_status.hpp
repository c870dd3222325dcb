#pragma once

#include <ATen/core/Tensor.h>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "gpu/stream.hpp"
#include "model/block_tape.hpp"
#include "model/model.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/pass/cross_entropy.hpp"
#include "strategy/state/replicas.hpp"
#include "strategy/strategy.hpp"

namespace stratagem {

/// Elements set aside for the status, wherever it travels with others; as many as keep
/// those aligned.
inline constexpr std::int64_t status_room = ParameterLayout::alignment;

/// What is added up in a status.
struct StatusTerms {
  int ranks = 1;      ///< whose statuses are added up
  int reporters = 1;  ///< of them: those that note the losses of their passes
  int passes = 1;     ///< noted by each
};

/// What all ranks learn in every step, as sums over ranks. Who owns one sends it around once per
/// step, after seal() and before fetch_sum(). Whether a fingerprint is the same on all ranks
/// shows in sums, too: of its parts and of their squares, which are integers small enough to be
/// exact for 70,000 ranks in fp32. Ranks agree on that as on the rest.
class StepStatus {
 public:
  /// `memory`: status_room elements of a floating type.
  explicit StepStatus(at::Tensor memory);

  /// What this rank wants, and the replicas that it compares; on the host.
  void begin(StepOptions const& options, ReplicaHashes hashes = {});
  ReplicaHashes const& hashes() const { return hashes_; }
  /// Of what ranks must have alike: the collectives called so far, and the hashes.
  std::uint64_t fingerprint(CollectiveLog const& collectives) const {
    return stratagem::fingerprint(collectives, hashes_);
  }
  /// That, and a fingerprint of what ranks must have alike, where the device will read it. seal()
  /// does it, too, unless a graph runs it again: then this comes first.
  void tell(std::uint64_t fingerprint);
  /// No pass has been noted; on the device.
  void clear();
  /// Of one forward pass, whose outputs `kept` still has.
  void note(CrossEntropy const& loss, TapePass const& kept);
  /// This rank cannot continue, for another reason than the losses noted: no rank will.
  void refuse();
  /// Comes last: tells, and what was told sets out for the device.
  void seal(std::uint64_t fingerprint);
  at::Tensor const& memory() const { return memory_; }

  /// The sum, which is there, sets out for the host. On a GPU nothing waits: it goes in the order
  /// of the compute stream, while more is submitted.
  void fetch_sum();
  /// fp32 scalar on the device: 1 where some rank's loss was not finite, else 0.
  at::Tensor refusal() const;
  /// Waits until the host has the sum. What the step returns. `finite` is false when some rank's
  /// loss was not finite, `alike` when fingerprints differ; nothing else holds then.
  struct Agreed {
    StepResult result;
    bool finite = true;  ///< and no rank has refused
    bool alike = true;
  };
  Agreed result(Batch const& batch, StatusTerms const& terms) const;

  /// Of this rank's passes, the first block whose output was not finite; -1 for none. Known at once
  /// on the CPU, never on a GPU.
  int first_bad_block() const { return first_bad_block_; }
  /// Likewise, whether the loss of a pass was not.
  bool knows_refusal() const { return refuses_; }

 private:
  static constexpr std::int64_t parts = 8;  ///< of a fingerprint, 4 bits each
  enum Field : std::int64_t {
    loss,
    correct,
    not_finite,
    stop,
    interrupt,
    save,
    first_part,
    first_square = first_part + parts,
    first_told = stop,
    end = first_square + parts,
  };

  at::Tensor memory_;
  Requests requests_;       ///< of this rank
  ReplicaHashes hashes_;    ///< of this step, where ranks compare them
  gpu::PinnedBuffer told_;  ///< fields from first_told on, on their way to the device
  gpu::PinnedBuffer sum_;   ///< on the host
  gpu::Event arrived_;      ///< there
  int first_bad_block_ = -1;
  bool refuses_ = false;
};

/// `what`: "the loss is not finite at step 3, of worker 1". It was first in the output of a block,
/// or of none: -1.
Error bad_loss(std::string const& what, Model const& model, int first_bad_block);

/// Ends a step whose loss was not finite, on all ranks: those where `first_bad_block` is one name
/// it.
[[noreturn]] void refuse_loss(Model const& model, Communicator& communicator, std::int64_t step,
                              int first_bad_block);

/// Error(non_finite) that names those of `gradients` that are not finite: a step whose losses were.
/// `whose`: "on rank 1", "summed over all ranks".
Error bad_gradient(std::int64_t step, std::string const& whose, NamedTensors const& gradients);

}  // namespace stratagem
