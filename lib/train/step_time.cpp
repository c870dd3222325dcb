#include "train/step_time.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/model_layout.hpp"
#include "strategy/ps/pull_pace.hpp"

namespace stratagem {
namespace {

/// Steps until one is like the others, and how many of these are looked at: workers may pull in
/// every second, third, fourth ... of them.
constexpr int steps_to_settle = 3, mean_over_steps = 12;

/// What one worker does: it computes, and communicates beside that, one operation after the other.
class Lanes {
 public:
  void compute(double seconds) {
    now_ += seconds;
    computed_ += seconds;
  }
  /// Begins now, or when what was begun before has ended. Returns when it ends.
  double communicate(double seconds) {
    link_ = std::max(link_, now_) + seconds;
    communicated_ += seconds;
    return link_;
  }
  void await(double moment) { now_ = std::max(now_, moment); }

  double now() const { return now_; }
  double computed() const { return computed_; }
  double communicated() const { return communicated_; }

 private:
  double now_ = 0, link_ = 0;
  double computed_ = 0, communicated_ = 0;
};

/// A plan with its costs, as the steps below need them.
class StepParts {
 public:
  StepParts(RunPlan const& plan, Model const& model, StepCosts const& costs)
      : plan(plan.strategy), costs(costs), layout(make_layout(model)) {}

  int blocks() const { return layout.blocks(); }
  double forward_of_block() const { return costs.forward_s / blocks(); }
  double backward_of_block() const { return costs.backward_s / blocks(); }
  double update_of(std::int64_t elements) const {
    return costs.optimizer_s * static_cast<double>(elements) / static_cast<double>(layout.size());
  }
  double all_reduce(std::int64_t elements) const { return costs.all_reduce.at(bytes(elements)); }
  double message(std::int64_t elements) const { return costs.message.at(bytes(elements)); }

  StrategyPlan const& plan;
  StepCosts const& costs;
  ParameterLayout layout;

 private:
  double bytes(std::int64_t elements) const {
    return static_cast<double>(elements * plan.element_size);
  }
};

class SerialStep {
 public:
  SerialStep(SerialConfig const&, StepParts const& parts) : parts_(parts) {}

  void run(Lanes& lanes) const {
    auto const pass = parts_.costs.forward_s + parts_.costs.backward_s;
    lanes.compute(parts_.plan.workers * parts_.plan.micro_batches * pass);
    lanes.compute(parts_.costs.optimizer_s);
  }

 private:
  StepParts const& parts_;
};

class DdpStep {
 public:
  DdpStep(DdpConfig const& config, StepParts const& parts) : config_(config), parts_(parts) {}

  void run(Lanes& lanes) const {
    auto const& buckets = parts_.plan.buckets.buckets;
    std::vector<double> reduced;
    auto const launch = [&](Bucket const& bucket) {
      reduced.push_back(lanes.communicate(parts_.all_reduce(bucket.range.size())));
    };
    for (int micro = 0; micro < config_.micro_batches; ++micro) {
      bool const overlaps = config_.overlap && micro + 1 == config_.micro_batches;
      lanes.compute(parts_.costs.forward_s);
      auto next = buckets.begin();
      for (int block = parts_.blocks() - 1; block >= 0; --block) {
        lanes.compute(parts_.backward_of_block());
        for (; overlaps && next != buckets.end() && next->first_block == block; ++next)
          launch(*next);
      }
    }
    if (!config_.overlap) std::ranges::for_each(buckets, launch);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      lanes.await(reduced[i]);
      lanes.compute(parts_.update_of(buckets[i].range.size()));
    }
  }

 private:
  DdpConfig const& config_;
  StepParts const& parts_;
};

class FsdpStep {
 public:
  FsdpStep(FsdpConfig const& config, StepParts const& parts)
      : overlap_(config.overlap),
        parts_(parts),
        plan_(*parts.plan.fsdp),
        gathered_(static_cast<std::size_t>(plan_.units())) {}

  void run(Lanes& lanes) {
    std::vector<double> reduced(gathered_.size());
    for (int micro = 0; micro < plan_.micro_batches; ++micro) {
      forward(lanes);
      backward(lanes, micro + 1 == plan_.micro_batches, reduced);
    }
    for (int unit = plan_.units() - 1; unit >= 0; --unit) {
      lanes.await(reduced[static_cast<std::size_t>(unit)]);
      for (auto const& chunk : plan_.unit(unit).chunks)
        lanes.compute(parts_.update_of(chunk.shard));
    }
    gather_ahead(-1, lanes);
  }

 private:
  struct Gathered {
    bool present = false;
    double moment = 0;
  };
  Gathered& state(int unit) { return gathered_[static_cast<std::size_t>(unit)]; }
  int blocks_of(int unit) const {
    return plan_.unit(unit).last_block - plan_.unit(unit).first_block + 1;
  }

  void gather(int unit, Lanes& lanes) {
    if (state(unit).present) return;
    auto const bytes = static_cast<double>(plan_.parameter_bytes(unit));
    state(unit) = {true, lanes.communicate(parts_.costs.all_gather.at(bytes))};
  }
  void unshard(int unit, Lanes& lanes) {
    gather(unit, lanes);
    lanes.await(state(unit).moment);
  }
  void gather_ahead(int unit, Lanes& lanes) {
    if (!overlap_ || plan_.prefetch == 0) return;
    for (int next = unit + 1; next < plan_.units(); ++next) {
      if (plan_.rotates(next) && next - unit > plan_.prefetch) return;
      gather(next, lanes);
    }
  }

  void forward(Lanes& lanes) {
    for (int unit = 0; unit < plan_.units(); ++unit) {
      unshard(unit, lanes);
      gather_ahead(unit, lanes);
      lanes.compute(blocks_of(unit) * parts_.forward_of_block());
      state(unit).present = plan_.stays_after_forward(unit);
    }
  }
  void backward(Lanes& lanes, bool last, std::vector<double>& reduced) {
    for (int unit = plan_.units() - 1; unit >= 0; --unit) {
      unshard(unit, lanes);
      for (int next = unit - 1; overlap_ && next >= std::max(unit - plan_.prefetch, 0); --next)
        gather(next, lanes);
      lanes.compute(blocks_of(unit) * parts_.backward_of_block());
      auto const bytes = static_cast<double>(plan_.gradient_bytes(unit));
      if (!plan_.whole_gradients || last) {
        auto const end = lanes.communicate(parts_.costs.reduce_scatter.at(bytes));
        reduced[static_cast<std::size_t>(unit)] = end;
        if (!overlap_) lanes.await(end);
      }
      state(unit).present = plan_.stays_after_backward(unit, last);
    }
  }

  bool overlap_;
  StepParts const& parts_;
  FsdpPlan const& plan_;
  std::vector<Gathered> gathered_;
};

/// When asynchronous workers that go on at the same speed pull.
class EvenPace {
 public:
  EvenPace(ServerPolicy const& policy, int workers) : pace_(policy), workers_(workers) {}

  bool next() {
    bool const pulls = pace_.next();
    ++age_;
    pace_.learn(age_ * workers_ - 1);
    if (pulls) age_ = 0;
    return pulls;
  }

 private:
  PullPace pace_;
  int workers_;
  std::int64_t age_ = 0;  ///< pushes since the last pull
};

class PsStep {
 public:
  PsStep(PsConfig const& config, StepParts const& parts)
      : parts_(parts),
        plan_(*parts.plan.servers),
        policy_(policy_of(config, plan_.workers())),
        pace_(policy_, plan_.workers()),
        arrivals_(static_cast<std::size_t>(policy_.delay) + 1,
                  std::vector<double>(plan_.chunks.size())),
        free_(plan_.shards.size()) {}

  void run(Lanes& lanes) {
    for (int push = 0; push < policy_.pushes; ++push)
      for (int micro = 1; micro <= parts_.plan.micro_batches; ++micro) {
        forward(lanes);  // but for the first all is there
        backward(lanes, micro == parts_.plan.micro_batches);
      }
  }

  /// Seconds of one step in which the busiest server serves what all workers push.
  double busiest_server() const {
    std::vector<double> busy(plan_.shards.size());
    for (auto const& chunk : plan_.chunks)
      busy[static_cast<std::size_t>(chunk.server)] += plan_.workers() * served(chunk);
    return policy_.pushes * std::ranges::max(busy);
  }
  /// Seconds of cores for servers and, on the side of the workers, messages of one step.
  double processor_s() const {
    auto const messages = 1 + pulls_of_push();
    double each = 0;
    for (auto const& chunk : plan_.chunks) each += served(chunk) + messages * message(chunk);
    return policy_.pushes * plan_.workers() * each;
  }

 private:
  double message(ServerChunk const& chunk) const { return parts_.message(chunk.range.size()); }
  double served(ServerChunk const& chunk) const {
    return parts_.costs.push.at(static_cast<double>(chunk.range.size()));
  }

  void forward(Lanes& lanes) {
    auto awaited = plan_.chunks.size();
    for (int block = 0; block < parts_.blocks(); ++block) {
      for (; awaited > 0 && plan_.chunks[awaited - 1].range.begin < parts_.layout.range(block).end;
           --awaited)
        lanes.await(arrivals_.front()[awaited - 1]);
      lanes.compute(parts_.forward_of_block());
    }
  }

  void backward(Lanes& lanes, bool pushes) {
    if (!pushes) return lanes.compute(parts_.costs.backward_s);
    bool const pulls = !policy_.asynchronous() || pace_.next();
    arrivals_.pop_front();
    arrivals_.emplace_back(plan_.chunks.size());
    std::size_t next = 0;
    for (int block = parts_.blocks() - 1; block >= 0; --block) {
      lanes.compute(parts_.backward_of_block());
      for (; next < plan_.chunks.size() &&
             plan_.chunks[next].range.begin >= parts_.layout.range(block).begin;
           ++next)
        push(plan_.chunks[next], lanes, pulls);
    }
    if (waits_for_all()) serve_all(pulls);
  }

  double pulls_of_push() const {
    if (!policy_.asynchronous()) return 1;
    EvenPace pace(policy_, plan_.workers());
    for (int i = 0; i < steps_to_settle; ++i) pace.next();
    int pulls = 0;
    for (int i = 0; i < mean_over_steps; ++i) pulls += pace.next() ? 1 : 0;
    return static_cast<double>(pulls) / mean_over_steps;
  }

  /// A server treats a push when all of it has come.
  bool waits_for_all() const {
    return policy_.asynchronous() && policy_.pulls == ServerPolicy::Pulls::consistent;
  }

  void push(ServerChunk const& chunk, Lanes& lanes, bool pulls) {
    auto& free = free_of(chunk);
    free = std::max(free, lanes.communicate(message(chunk)));
    if (waits_for_all()) return;
    free += (policy_.asynchronous() ? 1 : plan_.workers()) * served(chunk);
    if (pulls) arrival_of(chunk) = free + message(chunk);
  }

  /// A worker's chunks, which have all come; the first block's are the first to go back.
  void serve_all(bool pulls) {
    for (auto const& chunk : plan_.chunks) free_of(chunk) += served(chunk);
    if (!pulls) return;
    auto sent = free_;
    for (auto chunk = plan_.chunks.rbegin(); chunk != plan_.chunks.rend(); ++chunk)
      arrival_of(*chunk) = sent[static_cast<std::size_t>(chunk->server)] += message(*chunk);
  }

  double& arrival_of(ServerChunk const& chunk) {
    return arrivals_.back()[static_cast<std::size_t>(chunk.index)];
  }
  double& free_of(ServerChunk const& chunk) {
    return free_[static_cast<std::size_t>(chunk.server)];
  }

  StepParts const& parts_;
  ServerPlan const& plan_;
  ServerPolicy policy_;
  EvenPace pace_;
  std::deque<std::vector<double>> arrivals_;  ///< of chunks, by push; the next awaits the first
  std::vector<double> free_;                  ///< when each server is
};

/// The lanes of a mean step when it has become like those before.
struct Steady {
  double path_s, compute_s, communicate_s;
};
template <class Step>
Steady steady(Step& step) {
  Lanes lanes;
  for (int i = 0; i < steps_to_settle; ++i) step.run(lanes);
  auto const before = lanes;
  for (int i = 0; i < mean_over_steps; ++i) step.run(lanes);
  return {(lanes.now() - before.now()) / mean_over_steps,
          (lanes.computed() - before.computed()) / mean_over_steps,
          (lanes.communicated() - before.communicated()) / mean_over_steps};
}

/// `communication_s`: seconds of cores, of all ranks together; `awake`: see awake_ranks().
StepTime with_cores(double path_s, double compute_s, double communication_s, int ranks, int awake,
                    StepCosts const& costs) {
  StepTime time{.compute_s = compute_s, .exposed_s = std::max(path_s - compute_s, 0.0)};
  if (costs.cores == 0) return time;
  auto const on_node = static_cast<double>(costs.ranks_on_node) / ranks;
  auto const needed = on_node * (awake * costs.threads * compute_s + communication_s);
  time.cores_s = std::max(needed / costs.cores - time.total(), 0.0);
  return time;
}

/// Of the node's cores a rank's communication had these when it was measured.
double cores_of_rank(StepCosts const& costs) {
  return std::min(1.0, static_cast<double>(costs.cores) / costs.ranks_on_node);
}

StepTime time_of(SerialConfig const& config, StepParts const& parts) {
  SerialStep step(config, parts);
  auto const found = steady(step);
  return with_cores(found.path_s, found.compute_s, 0, 1, 1, parts.costs);
}

template <class Step>
StepTime time_of_collectives(Step step, StepParts const& parts) {
  auto const found = steady(step);
  int const ranks = parts.plan.workers;
  return with_cores(found.path_s, found.compute_s,
                    ranks * cores_of_rank(parts.costs) * found.communicate_s, ranks, ranks,
                    parts.costs);
}

StepTime time_of(DdpConfig const& config, StepParts const& parts) {
  return time_of_collectives(DdpStep(config, parts), parts);
}

StepTime time_of(FsdpConfig const& config, StepParts const& parts) {
  return time_of_collectives(FsdpStep(config, parts), parts);
}

StepTime time_of(PsConfig const& config, StepParts const& parts) {
  PsStep step(config, parts);
  auto const found = steady(step);
  auto const& roles = parts.plan.roles;
  auto const ranks = static_cast<int>(roles.workers.size() + roles.servers.size());
  return with_cores(std::max(found.path_s, step.busiest_server()), found.compute_s,
                    step.processor_s(), ranks, awake_ranks(parts.plan), parts.costs);
}

/// Each rank that holds whole tensors saves its part of parameters and momentum.
double save_time(RunPlan const& plan, Model const& model, Calibration const& calibration) {
  auto const ranks = static_cast<int>(plan.strategy.holders.size());
  return calibration.save_s(ranks, static_cast<double>(saved_bytes(model, plan.config)) / ranks);
}

/// The plan of the same ranks with mode sync, whose steps a warm start's are like.
RunPlan synchronous(RunPlan const& plan, PsConfig const& ps, Model const& model) {
  auto config = plan.config;
  config.strategy = PsConfig{.servers = ps.servers,
                             .server_ranks = ps.server_ranks,
                             .listed_ranks = ps.listed_ranks,
                             .chunk_mb = ps.chunk_mb,
                             .transport = ps.transport,
                             .micro_batches = ps.micro_batches};
  return make_run_plan(config, model, plan.images, plan.ranks);
}

/// Of all steps, the first of which may be a warm start.
double training_time(RunPlan const& plan, Model const& model, Calibration const& calibration,
                     double step_s) {
  auto const* ps = std::get_if<PsConfig>(&plan.config.strategy);
  auto const warm =
      ps != nullptr ? std::min<std::int64_t>(ps->warm_start, plan.total_steps) : std::int64_t{0};
  auto const rest = static_cast<double>(plan.total_steps - warm) * step_s;
  if (warm == 0) return rest;
  auto const like = synchronous(plan, *ps, model);
  auto const step = predict_step(like, model, step_costs(like, model, calibration));
  return static_cast<double>(warm) * step.total() + rest;
}

/// Training, which takes so long without a limit, and evaluations.
double run_time(RunPlan const& plan, StepCosts const& costs, double training) {
  auto const& run = plan.config.run;
  if (run.max_time_s > 0) training = std::min(training, run.max_time_s);
  if (run.evaluate_every == 0) return training;
  auto const epochs =
      std::ceil(static_cast<double>(plan.total_steps) /
                static_cast<double>(std::max<std::int64_t>(plan.steps_per_epoch, 1)));
  auto const evaluations =
      std::max(std::ceil(epochs / static_cast<double>(run.evaluate_every)), 1.0);
  auto const passes = static_cast<double>(plan.images.test) /
                      static_cast<double>(plan.samples_per_pass * plan.strategy.workers);
  int const on_node = std::max(costs.ranks_on_node * costs.threads, 1);
  auto const sharing =
      costs.cores > 0 ? std::max(1.0, static_cast<double>(on_node) / costs.cores) : 1.0;
  return training + evaluations * passes * costs.forward_s * sharing;
}

}  // namespace

std::string PredictedTime::request() const {
  auto const minutes = saturated(std::ceil((1.25 * run_s + 300) / 60));
  auto const two = [](std::int64_t number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  return str(two(minutes / 60), ":", two(minutes % 60), ":00");
}

int PredictedTime::lead_s() const {
  return 10 * static_cast<int>(std::ceil((60 + 2 * (2 * step.total() + save_s)) / 10));
}

StepTime predict_step(RunPlan const& plan, Model const& model, StepCosts const& costs) {
  StepParts const parts(plan, model, costs);
  return std::visit([&](auto const& config) { return time_of(config, parts); },
                    plan.config.strategy);
}

void predict_time(RunPlan& plan, Model const& model, Calibration const& calibration) {
  try {
    auto const costs = step_costs(plan, model, calibration);
    PredictedTime time{.step = predict_step(plan, model, costs),
                       .published = calibration.published};
    time.epoch_s = static_cast<double>(plan.steps_per_epoch) * time.step.total();
    time.run_s = run_time(plan, costs, training_time(plan, model, calibration, time.step.total()));
    time.save_s = save_time(plan, model, calibration);
    plan.time = time;
  } catch (Error const& problem) {
    plan.time_problem = problem.what();
  }
}

}  // namespace stratagem
