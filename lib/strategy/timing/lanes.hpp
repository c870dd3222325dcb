#pragma once

#include <functional>
#include <utility>

#include "params/parameter_layout.hpp"
#include "strategy/plan.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem {

// The time of a step, predicted from a plan and what was measured of a machine: one worker is
// followed through a step that is like the one before.

/// What one worker does: it computes, and communicates beside that, one operation after the other.
class Lanes {
 public:
  /// What is done, in its order.
  struct Event {
    enum class Kind { compute, communicate, await } kind;
    double seconds = 0;  ///< that it takes; of await: the moment
    double end = 0;      ///< of communicate: the moment
  };
  using Heard = std::function<void(Event const&)>;

  /// `heard` is told of all events, where it is given.
  explicit Lanes(Heard heard = {}) : heard_(std::move(heard)) {}

  void compute(double seconds);
  /// Begins now, or when what was begun before has ended. Returns when it ends.
  double communicate(Transfer const& transfer);
  void await(double moment);

  double now() const { return now_; }
  double computed() const { return computed_; }
  /// Seconds of a core.
  double moved() const { return moved_; }

 private:
  void tell(Event const& event) const {
    if (heard_) heard_(event);
  }

  Heard heard_;
  double now_ = 0, link_ = 0;
  double computed_ = 0, moved_ = 0;
};

/// A plan with its costs.
class StepParts {
 public:
  StepParts(StrategyPlan const& plan, Model const& model, StepCosts const& costs,
            Lanes::Heard heard = {});

  int blocks() const { return layout.blocks(); }
  double forward_of_block() const { return costs.forward_s / blocks(); }
  double backward_of_block() const { return costs.backward_s / blocks(); }
  double update_of(std::int64_t elements) const {
    return costs.optimizer_s * static_cast<double>(elements) / static_cast<double>(layout.size());
  }
  Transfer all_reduce(std::int64_t elements) const { return costs.all_reduce.at(bytes(elements)); }
  Transfer message(std::int64_t elements) const { return costs.message.at(bytes(elements)); }

  StrategyPlan const& plan;
  StepCosts const& costs;
  ParameterLayout layout;
  Lanes::Heard heard;  ///< of all steps that are looked at; for tests

 private:
  double bytes(std::int64_t elements) const {
    return static_cast<double>(elements * plan.element_size);
  }
};

/// Steps until one is like the others, and how many of these are looked at: workers may pull in
/// every second, third, fourth ... of them.
inline constexpr int steps_to_settle = 3, mean_over_steps = 12;

/// A mean step when it has become like those before.
struct Steady {
  double path_s, compute_s;
  double moving_s;  ///< of a core of each rank, for transfers

  /// Of each of `count` steps that it consists of.
  friend Steady operator/(Steady const& whole, int count) {
    return {whole.path_s / count, whole.compute_s / count, whole.moving_s / count};
  }
};
Steady steady(StepParts const& parts, std::function<void(Lanes&)> const& step);

/// `moving_s`: seconds of cores for transfers, of all ranks together; `awake`: ranks that want a
/// core all the time.
StepTime with_cores(double path_s, double compute_s, double moving_s, int ranks, int awake,
                    StepCosts const& costs);

/// Of ranks that all compute, and communicate by collectives.
StepTime time_of_collectives(Steady const& found, StepParts const& parts);

}  // namespace stratagem
