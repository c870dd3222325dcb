#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/failpoint.hpp"
#include "gpu/device.hpp"
#include "trace/heartbeat_status.hpp"
#include "trace/records.hpp"
#include "trace/ring.hpp"
#include "trace/step_marks.hpp"

namespace stratagem::trace {

/// Collects the records of one rank until a TraceFile takes them. On the step path, it does not
/// allocate, lock or do I/O. The training thread records steps, epochs, server updates, memory and
/// compute spans; each other lane is recorded by its own thread; events by any thread. The recorder
/// knows where the training is, so it also has the heartbeat for observers, and the failpoints for
/// tests.
class Recorder {
 public:
  /// Spans and memory are recorded in every `spans_every`-th step; 0: never. `sign` shows what the
  /// rank is doing; it must outlive the recorder.
  Recorder(gpu::Device const& device, int spans_every, Sign* sign = nullptr,
           Failpoints failpoints = {});

  /// The id of a name, new or known. Locks and may allocate: for set-up, not for the step path.
  NameId intern(std::string_view name);

  void begin_step(std::int64_t step, std::int64_t epoch);
  /// From here on, the compute stream is in `phase`.
  void enter(Phase phase);
  /// What the phases are of work that a graph keeps, as `body` enters them.
  struct KeptPhases {
    StepMarks::Kept of_step;
    gpu::MemoryUse at_backward;  ///< when the backward pass begins
  };
  KeptPhases keep(std::function<void()> const& body);
  /// The graph runs again: enters its phases. The marks that it is to make, in their order.
  std::vector<void*> repeat(KeptPhases const& kept);
  /// The training thread begins something that is not part of a step.
  void enter(Activity activity, std::int64_t step = -1);
  /// Ends the step's phases. The step is recorded when the device has reached this point; on a GPU,
  /// this is when the next step ends, so that the host can run ahead. In a sampled step, each part
  /// of a phase is also a span of the compute lane.
  void end_step(StepOutcome const& outcome = {});
  /// Waits until all ended steps are recorded. Called when training pauses.
  void settle();
  /// The step that was recorded last.
  StepRecord const& last_step() const { return last_step_; }
  /// "at step 12, forward", "after step 12" or "before the first step": for messages of the
  /// training thread.
  std::string where() const;

  /// The current step if its spans are recorded, else -1. Any thread may ask.
  std::int64_t sampled_step() const { return sampled_step_.load(std::memory_order_relaxed); }

  /// A finished span of a lane other than compute, called by that lane's thread.
  void record(SpanRecord const& span) { spans_[static_cast<std::size_t>(span.lane)].push(span); }
  void record(StepRecord const& step) { steps_.push(step); }
  void record(EpochRecord const& epoch) { epochs_.push(epoch); }
  void record(PsRecord const& update) { updates_.push(update); }
  /// Locks, and may allocate.
  void event(Severity severity, std::string_view name, std::string_view text);

  HeartbeatStatus& heartbeat() { return heartbeat_; }
  Failpoints const& failpoints() const { return failpoints_; }

  /// Live tensors by category, heap and resident set at this moment. Sampled steps record them
  /// automatically when the backward pass begins: at that moment, activations are largest.
  void sample_memory();
  /// The same, with `use` from another moment, such as an epoch's peak.
  void sample_memory(gpu::MemoryUse const& use);

 private:
  StepMarks& present() { return marks_[present_]; }
  void note_memory();
  bool samples(std::int64_t step) const { return spans_every_ > 0 && step % spans_every_ == 0; }

  friend class TraceFile;
  gpu::Device device_;
  int spans_every_;
  HeartbeatStatus heartbeat_;
  Failpoints failpoints_;

  std::array<StepMarks, 2> marks_;  ///< of the current and the previous step
  std::size_t present_ = 0;
  StepMarks* unrecorded_ = nullptr;  ///< of the step that has ended but is not recorded yet
  StepRecord last_step_;
  KeptPhases* keeping_ = nullptr;  ///< what is entered now
  std::atomic<std::int64_t> sampled_step_ = -1;

  Ring<StepRecord> steps_{1 << 14};
  Ring<EpochRecord> epochs_{1 << 10};
  Ring<PsRecord> updates_{1 << 14};
  Ring<MemoryRecord> memory_{1 << 12};
  Ring<EventRecord> events_{1 << 10};
  std::array<Ring<SpanRecord>, lanes> spans_{Ring<SpanRecord>(1 << 15), Ring<SpanRecord>(1 << 15),
                                             Ring<SpanRecord>(1 << 15)};

  std::mutex events_mutex_;  ///< protects the writing end of events_
  std::mutex names_mutex_;
  std::vector<std::string> names_;  ///< the phases first, in their order
};

}  // namespace stratagem::trace
