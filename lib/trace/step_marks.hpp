#pragma once

#include <cstdint>
#include <vector>

#include "gpu/marks.hpp"
#include "trace/records.hpp"

namespace stratagem::trace {

/// Facts of a step that its phases do not contain.
struct StepOutcome {
  double loss = unknown;     ///< mean over the global batch
  std::int64_t samples = 0;  ///< of this rank
  double lr = unknown;
};

/// When the phases of one step begin and end on the compute stream. Does not allocate; does not
/// wait before resolve().
class StepMarks {
 public:
  explicit StepMarks(gpu::Device const& device);

  void begin(std::int64_t step, std::int64_t epoch);
  /// Outside a step it does nothing.
  void enter(Phase phase);
  void end(StepOutcome const& outcome);

  /// Phases that a graph makes the marks of, and the marks' handles.
  struct Kept {
    std::vector<Phase> phases;
    std::vector<void*> marks;
  };
  /// Entered since there were `count` of them; those of a step that there was no room for are left
  /// out.
  Kept entered_since(std::size_t count) const;
  std::size_t entered() const { return entered_.size(); }
  /// What was entered since did not happen.
  void return_to(std::size_t count);
  /// A graph will enter these phases again. The marks that it is to make.
  std::vector<void*> expect(Kept const& kept);

  std::int64_t step() const { return record_.step; }
  /// In a step that has not ended: whether it is in a phase, and in which.
  bool in_phase() const { return !ended_ && !entered_.empty(); }
  Phase phase() const { return entered_.back().phase; }
  /// Whether a backward phase that begins now is the beginning of a backward pass, not its
  /// continuation after a wait.
  bool comes_from_forward() const;

  /// Waits until the device has reached the end of the step. Returns the step with its times; a
  /// step without phases has none. `not_before`: when the previous step ended [ns], which a host
  /// that runs ahead of its device does not know.
  StepRecord resolve(std::int64_t not_before);
  /// After resolve(): calls `visit(phase, begin, end)` for each part of a phase.
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
  int end_ = -1;  ///< its mark; -1 if there was no room for it
  bool ended_ = false;
};

}  // namespace stratagem::trace
