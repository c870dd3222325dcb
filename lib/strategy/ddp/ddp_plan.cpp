#include "strategy/ddp/ddp_plan.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/arithmetic.hpp"
#include "base/console/table.hpp"
#include "base/text.hpp"
#include "strategy/ddp/ddp.hpp"
#include "strategy/ddp/ddp_step.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/compressed.hpp"
#include "strategy/shared/control.hpp"

namespace stratagem {
namespace {

class PlannedDdp final : public PlannedStrategy {
 public:
  explicit PlannedDdp(DdpPlan plan) : plan_(std::move(plan)) {}

  DdpPlan const& plan() const { return plan_; }

  Member make(StrategyParts const& parts) const override {
    return {.strategy = std::make_unique<Ddp>(plan_, parts)};
  }

  StepTime time(StepParts const& parts) const override {
    auto const step = [&](Lanes& lanes) { run_step(plan_, parts, lanes); };
    return time_of_collectives(steady(parts, step), parts);
  }

  std::string tables(Model const& model) const override {
    std::vector<Table::Column> columns{{"bucket"}, {"size"}};
    if (!plan_.coded.empty())
      columns.push_back({str("in ", name_of(plan_.config.compression.code))});
    columns.push_back({"blocks, as the backward pass completes them", Align::left});
    Table table(columns);
    for (std::size_t i = 0; i < plan_.buckets.buckets.size(); ++i) {
      auto const& bucket = plan_.buckets.buckets[i];
      std::vector<std::string> row{std::to_string(i), bytes_text(bytes_of(bucket))};
      if (!plan_.coded.empty()) row.push_back(bytes_text(plan_.coded_bytes(i)));
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
        buckets.back()["coded_bytes"] = plan_.coded_bytes(buckets.size() - 1);
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
  plan_compression(config.compression, SumCode::coded, input, plan);
  plan.steps_can_be_kept = !config.compression.on() && !input.model.waits_for_device;
  plan.operations = {config.compression.on() ? BenchOperation::send_receive
                                             : BenchOperation::all_reduce};
  plan.hashes.emplace_back("buckets", ddp.buckets.hash());
  plan.strategy = std::make_shared<PlannedDdp>(std::move(ddp));
  return plan;
}

std::int64_t DdpPlan::coded_bytes(std::size_t bucket) const {
  std::int64_t bytes = 0;
  for (auto const& piece : coded)
    if (piece.bucket == bucket) bytes += ceil_div(piece.range.size(), piece.slice) * piece.wire;
  return bytes;
}

DdpPlan const* ddp_of(StrategyPlan const& plan) {
  auto const* planned = dynamic_cast<PlannedDdp const*>(plan.strategy.get());
  return planned == nullptr ? nullptr : &planned->plan();
}

}  // namespace stratagem
