#pragma once

#include <cstdint>
#include <vector>

#include "gpu/marks.hpp"
#include "trace/records.hpp"

namespace stratagem::trace {

/// What the training knows of a step that its phases do not tell.
struct StepOutcome {
  double loss = unknown;     ///< mean over the global batch
  std::int64_t samples = 0;  ///< of this rank
  double lr = unknown;
};

/// Where the phases of one step begin and end on the compute stream. Neither allocates nor waits
/// before resolve().
class StepMarks {
 public:
  explicit StepMarks(gpu::Device const& device);

  void begin(std::int64_t step, std::int64_t epoch);
  /// Outside a step it does nothing.
  void enter(Phase phase);
  void end(StepOutcome const& outcome);

  std::int64_t step() const { return record_.step; }
  /// Of a step that has not ended: whether it is in some phase, and in which.
  bool in_phase() const { return !ended_ && !entered_.empty(); }
  Phase phase() const { return entered_.back().phase; }
  /// Whether a backward pass that begins now is a pass's first part, not what follows a wait in it.
  bool comes_from_forward() const;

  /// Waits until the device reached the end. The step with its times; one of no phase has none.
  /// `not_before`: when the step before ended, which a host that is ahead of its device does not
  /// see [ns].
  StepRecord resolve(std::int64_t not_before);
  /// After resolve(): calls `visit(phase, begin, end)` with each stretch of a phase.
  template <class Visit>
  void for_each_stretch(Visit visit) const {
    for (std::size_t i = 0; i < entered_.size() && end_ >= 0; ++i)
      visit(entered_[i].phase, marks_.ns(entered_[i].mark),
            marks_.ns(i + 1 < entered_.size() ? entered_[i + 1].mark : end_));
  }

 private:
  struct Entry {
    Phase phase;
    int mark;  ///< where it began
  };

  gpu::Marks marks_;
  std::vector<Entry> entered_;
  StepRecord record_{.step = -1, .epoch = -1};
  int end_ = -1;  ///< the mark; -1 without room for it
  bool ended_ = false;
};

}  // namespace stratagem::trace
