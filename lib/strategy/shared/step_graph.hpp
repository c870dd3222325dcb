#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "gpu/graph.hpp"
#include "gpu/stream.hpp"
#include "strategy/strategy_parts.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// The work of a step on its device. A GPU may keep it as a graph: after a few steps in which
/// libraries choose their kernels and take their memory, it is captured once and then launched in
/// each step, which costs the host microseconds however many kernels there are. The bits are those
/// of the work submitted anew.
///
/// The graph reads what lies in the same memory in every step: parameters, buffers, a copy of the
/// batch, and the present step, for masks. What else work depends on must be the same in every
/// step, or in the batch's shape or the loss scale, with which a new graph is made.
class StepGraph {
 public:
  /// Keeps nothing where parts.graph is false, or the device cannot.
  explicit StepGraph(StrategyParts const& parts);

  using Work = std::function<void(Batch const&)>;
  /// Runs `work` on the batch, or on a copy of it. Work waits for nothing on the host. If it cannot
  /// be kept it is submitted anew from then on; Error(environment) where other ranks take part.
  void run(Batch const& batch, double loss_scale, Work const& work);
  /// Whether work is kept, or will be.
  bool keeps() const { return keeps_; }
  /// For passes of `work`.
  Context context_of(Batch const& micro) const;

 private:
  /// What one graph was made for.
  struct Kind {
    std::vector<std::int64_t> inputs, labels;  ///< shapes
    std::int64_t first_slot = 0;
    double loss_scale = 1;
    bool operator==(Kind const&) const = default;
  };
  struct Kept {
    Work work;
    std::unique_ptr<gpu::Graph> graph;
    trace::Recorder::KeptPhases phases;
    World::Kept collectives;
  };

  /// False when the work cannot be kept.
  bool capture(Work const& work);
  void place(Batch const& batch);
  void refuse(std::string const& why);

  StrategyParts parts_;
  bool keeps_;
  Kind kind_;
  int steps_of_kind_ = 0;  ///< that were submitted anew
  Batch batch_;            ///< where the graph reads
  at::Tensor step_word_;   ///< int64 [1]: step << 32
  gpu::PinnedBuffer next_step_word_;
  bool in_graph_ = false;  ///< what runs is kept
  std::unique_ptr<Kept> kept_;
};

}  // namespace stratagem
