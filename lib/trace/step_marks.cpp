#include "trace/step_marks.hpp"

#include "base/contract.hpp"

namespace stratagem::trace {
namespace {

constexpr int marks_per_step = 4096;  // one per change of phase

}  // namespace

StepMarks::StepMarks(gpu::Device const& device) : marks_(device, marks_per_step) {
  entered_.reserve(marks_per_step);
}

void StepMarks::begin(std::int64_t step, std::int64_t epoch) {
  marks_.clear();
  entered_.clear();
  record_ = {.step = step, .epoch = epoch};
  end_ = -1;
  ended_ = false;
}

void StepMarks::enter(Phase phase) {
  if (ended_) return;
  if (int const mark = marks_.add(); mark >= 0) entered_.push_back({phase, mark});
}

void StepMarks::end(StepOutcome const& outcome) {
  record_.loss = outcome.loss;
  record_.samples = outcome.samples;
  record_.lr = outcome.lr;
  end_ = marks_.add();
  ended_ = true;
}

StepMarks::Kept StepMarks::entered_since(std::size_t count) const {
  Kept kept;
  for (auto i = count; i < entered_.size(); ++i) {
    kept.phases.push_back(entered_[i].phase);
    kept.marks.push_back(marks_.handle(entered_[i].mark));
  }
  return kept;
}

void StepMarks::return_to(std::size_t count) {
  if (count < entered_.size()) marks_.keep_first(entered_[count].mark);
  entered_.resize(count);
}

std::vector<void*> StepMarks::expect(Kept const& kept) {
  std::vector<void*> handles;
  for (std::size_t i = 0; i < kept.phases.size(); ++i) {
    int const mark = marks_.expect();
    expects(mark >= 0, "room for the marks of a graph");
    entered_.push_back({kept.phases[i], mark});
    handles.push_back(marks_.handle(mark));
  }
  return handles;
}

bool StepMarks::comes_from_forward() const {
  for (auto entry = entered_.rbegin(); entry != entered_.rend(); ++entry)
    if (entry->phase == Phase::forward || entry->phase == Phase::backward)
      return entry->phase == Phase::forward;
  return true;
}

StepRecord StepMarks::resolve(std::int64_t not_before) {
  marks_.resolve(not_before);
  if (entered_.empty() || end_ < 0) return record_;
  record_.t_begin = marks_.ns(entered_.front().mark);
  record_.duration = marks_.ns(end_) - record_.t_begin;
  for_each_stretch([this](Phase phase, std::int64_t begin, std::int64_t end) {
    record_.durations[static_cast<std::size_t>(phase)] += end - begin;
  });
  return record_;
}

}  // namespace stratagem::trace
