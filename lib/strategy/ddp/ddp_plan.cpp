#include "strategy/ddp/ddp_plan.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/arithmetic.hpp"
#include "base/console/table.hpp"
#include "base/text.hpp"
#include "strategy/ddp/ddp.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/compressed.hpp"
#include "strategy/shared/control.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

/// A bucket's all-reduce begins when its first block is back and the bucket before has been
/// reduced; then each bucket is awaited and updated: Ddp::step() on lanes.
class DdpStep {
 public:
  DdpStep(DdpPlan const& plan, StepParts const& parts) : plan_(plan), parts_(parts) {}

  void run(Lanes& lanes) const {
    auto const& config = plan_.config;
    auto const& buckets = plan_.buckets.buckets;
    std::vector<double> reduced;
    auto const launch = [&](std::size_t bucket) {
      reduced.push_back(lanes.communicate(parts_.all_reduce(plan_.elements_sent(bucket))));
    };
    for (int micro = 0; micro < config.micro_batches; ++micro) {
      bool const overlaps = config.overlap && micro + 1 == config.micro_batches;
      lanes.compute(parts_.costs.forward_s);
      std::size_t next = 0;
      for (int block = parts_.blocks() - 1; block >= 0; --block) {
        lanes.compute(parts_.backward_of_block());
        for (; overlaps && next < buckets.size() && buckets[next].first_block == block; ++next)
          launch(next);
      }
    }
    for (std::size_t i = 0; !config.overlap && i < buckets.size(); ++i) launch(i);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      lanes.await(reduced[i]);
      lanes.compute(parts_.update_of(buckets[i].range.size()));
    }
  }

 private:
  DdpPlan const& plan_;
  StepParts const& parts_;
};

class PlannedDdp final : public PlannedStrategy {
 public:
  explicit PlannedDdp(DdpPlan plan) : plan_(std::move(plan)) {}

  DdpPlan const& plan() const { return plan_; }

  Member make(StrategyParts const& parts) const override {
    return {.strategy = std::make_unique<Ddp>(plan_, parts)};
  }

  StepTime time(StepParts const& parts) const override {
    DdpStep const step(plan_, parts);
    return time_of_collectives(steady(parts, [&](Lanes& lanes) { step.run(lanes); }), parts);
  }

  std::string tables(Model const& model) const override {
    auto const& code = code_names[static_cast<std::size_t>(plan_.config.compression.code)];
    std::vector<Table::Column> columns{{"bucket"}, {"size"}};
    if (!plan_.coded.empty()) columns.push_back({str("in ", code)});
    columns.push_back({"blocks, as the backward pass completes them", Align::left});
    Table table(columns);
    for (std::size_t i = 0; i < plan_.buckets.buckets.size(); ++i) {
      auto const& bucket = plan_.buckets.buckets[i];
      std::vector<std::string> row{std::to_string(i), bytes_text(bytes_of(bucket))};
      if (!plan_.coded.empty())
        row.push_back(bytes_text(plan_.elements_sent(i) * plan_.element_size));
      row.push_back(block_range(bucket.last_block, bucket.first_block, model));
      table.add_row(row);
    }
    return table.render();
  }

  void add_to(nlohmann::json& document) const override {
    auto& buckets = document["buckets"] = nlohmann::json::array();
    for (auto const& bucket : plan_.buckets.buckets) {
      buckets.push_back({{"begin", bucket.range.begin},
                         {"end", bucket.range.end},
                         {"bytes", bytes_of(bucket)},
                         {"first_block", bucket.first_block},
                         {"last_block", bucket.last_block}});
      if (!plan_.coded.empty())
        buckets.back()["coded_bytes"] =
            plan_.elements_sent(buckets.size() - 1) * plan_.element_size;
    }
  }

 private:
  std::int64_t bytes_of(Bucket const& bucket) const {
    return bucket.range.size() * plan_.element_size;
  }

  DdpPlan plan_;
};

}  // namespace

StrategyPlan plan_of(DdpConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  DdpPlan ddp{.config = config, .buckets = {}, .element_size = plan.element_size};
  ddp.buckets =
      make_bucket_plan(input.layout, saturated(config.bucket_mb * (1 << 20)), plan.element_size);
  plan.micro_batches = config.micro_batches;
  plan.memory[gpu::MemoryCategory::gradients] += control_room * plan.element_size;
  if (config.compression.on()) {
    ddp.coded = coded_pieces(ddp.buckets, config.compression.code, input.ranks);
    plan.memory[gpu::MemoryCategory::gradients] +=
        bytes_held(ddp.coded, config.compression.error_feedback, input.ranks, input.layout.size());
    plan.bytes_sent_per_step = bytes_sent(ddp.coded, input.ranks) +
                               all_reduce_bytes(control_room * plan.element_size, input.ranks);
  } else {
    for (auto const& bucket : ddp.buckets.buckets) {
      auto const elements = bucket.range.size() + (bucket.range.begin == 0 ? control_room : 0);
      plan.bytes_sent_per_step += all_reduce_bytes(elements * plan.element_size, input.ranks);
    }
  }
  plan.most_bytes_sent_per_step = plan.bytes_sent_per_step;
  plan.order_of_sums = order_of_sums(config.micro_batches);
  plan_compression(config.compression, input, plan);
  plan.steps_can_be_kept = !config.compression.on() && !input.model.waits_for_device;
  plan.operations = {BenchOperation::all_reduce};
  plan.hashes.emplace_back("buckets", ddp.buckets.hash());
  plan.strategy = std::make_shared<PlannedDdp>(std::move(ddp));
  return plan;
}

std::int64_t DdpPlan::elements_sent(std::size_t bucket) const {
  if (coded.empty()) return buckets.buckets[bucket].range.size();
  std::int64_t bytes = 0;
  for (auto const& piece : coded)
    if (piece.bucket == bucket) bytes += ceil_div(piece.range.size(), piece.slice) * piece.wire;
  return ceil_div(bytes, element_size);
}

DdpPlan const* ddp_of(StrategyPlan const& plan) {
  auto const* planned = dynamic_cast<PlannedDdp const*>(plan.strategy.get());
  return planned == nullptr ? nullptr : &planned->plan();
}

}  // namespace stratagem
