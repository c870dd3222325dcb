#include "strategy/ddp/ddp_plan.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/arithmetic.hpp"
#include "base/console/table.hpp"
#include "base/text.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/data_parallel/data_parallel_worker.hpp"
#include "strategy/ddp/ddp_step.hpp"
#include "strategy/ddp/low_rank_sums.hpp"
#include "strategy/ddp/replicated.hpp"
#include "strategy/ddp/sparse_sums.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/step_status.hpp"

namespace stratagem {
namespace {

class PlannedDdp final : public PlannedAs<DdpPlan> {
 public:
  using PlannedAs::PlannedAs;

  Member make(StrategyParts const& parts) const override {
    auto& group = parts.world.all();
    return {.strategy = std::make_unique<DataParallelWorker>(
                std::make_unique<Replicated>(plan_, parts, group), plan_.config.micro_batches,
                parts, group)};
  }

  StepTime time(StepParts const& parts) const override {
    auto const step = [&](Lanes& lanes) { run_step(plan_, parts, lanes); };
    return time_of_collectives(steady(parts, step), parts);
  }

  std::string tables(Model const& model) const override {
    std::vector<Table::Column> columns{{"bucket"}, {"size"}};
    if (plan_.config.compression.on())
      columns.push_back({str("in ", name_of(plan_.config.compression.code))});
    columns.push_back({"blocks, as the backward pass completes them", Align::left});
    Table table(columns);
    for (std::size_t i = 0; i < plan_.buckets.buckets.size(); ++i) {
      auto const& bucket = plan_.buckets.buckets[i];
      std::vector<std::string> row{std::to_string(i), bytes_text(bytes_of(bucket))};
      if (plan_.config.compression.on()) row.push_back(bytes_text(plan_.coded_bytes(i)));
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
      if (plan_.config.compression.on())
        buckets.back()["coded_bytes"] = plan_.coded_bytes(buckets.size() - 1);
    }
  }

 private:
  std::int64_t bytes_of(Bucket const& bucket) const {
    return bucket.range.size() * plan_.element_size;
  }
};

/// What the sums of gradients take.
struct PlannedSums {
  std::int64_t bytes_sent = 0;  ///< with the status
  std::int64_t bytes_held = 0;  ///< beside the gradients
  std::vector<BenchOperation> operations;
};

/// In the code that is chosen, which `ddp` is told.
PlannedSums plan_sums(DdpPlan& ddp, PlanInput const& input) {
  auto const& compression = ddp.config.compression;
  auto const elements = input.layout.size();
  auto const status = all_reduce_bytes(status_room * ddp.element_size, input.ranks);
  auto const& buckets = ddp.buckets.buckets;
  if (compression.in_blocks()) {
    ddp.coded = coded_pieces(ddp.buckets, compression.code, input.ranks);
    return {status + bytes_sent(ddp.coded, input.ranks),
            bytes_held(ddp.coded, compression.error_feedback, input.ranks, elements),
            {BenchOperation::send_receive}};
  }
  if (compression.sparse()) {
    for (auto const& bucket : buckets)
      ddp.sparse.push_back(sparse_message(compression, input.layout, bucket.range));
    return {
        status + bytes_sent(compression, ddp.sparse, input.ranks),
        bytes_held(compression, ddp.sparse, input.ranks, elements),
        {compression.places_travel() ? BenchOperation::all_gather : BenchOperation::all_reduce}};
  }
  if (compression.low_rank()) {
    for (auto const& bucket : buckets)
      ddp.low_rank.push_back(low_rank_plan(compression.matrix_rank, input.layout, bucket.range));
    return {status + bytes_sent(ddp.low_rank, input.ranks),
            bytes_held(ddp.low_rank, elements),
            {BenchOperation::all_reduce}};
  }
  PlannedSums plain{.operations = {BenchOperation::all_reduce}};
  for (auto const& bucket : buckets) {
    auto const with = bucket.range.size() + (bucket.range.begin == 0 ? status_room : 0);
    plain.bytes_sent += all_reduce_bytes(with * ddp.element_size, input.ranks);
  }
  return plain;
}

}  // namespace

StrategyPlan plan_of(DdpConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  DdpPlan ddp{.config = config, .buckets = {}, .element_size = plan.element_size};
  ddp.buckets =
      make_bucket_plan(input.layout, saturated(config.bucket_mb * (1 << 20)), plan.element_size);
  plan.shares.micro_batches = config.micro_batches;
  plan.numbers.order_of_sums = order_of_sums(config.micro_batches);
  plan_compression(config.compression, SumCode::coded, input, plan);
  auto const gradients = plan_sums(ddp, input);
  plan.memory[gpu::MemoryCategory::gradients] +=
      status_room * plan.element_size + gradients.bytes_held;
  plan.traffic.bytes_sent = plan.traffic.most_bytes_sent = gradients.bytes_sent;
  plan.traffic.operations = gradients.operations;
  plan.steps_can_be_kept = !config.compression.on() && !input.model.waits_for_device;
  plan.hashes.emplace_back("buckets", ddp.buckets.hash());
  plan.strategy = std::make_shared<PlannedDdp>(std::move(ddp));
  return plan;
}

std::int64_t DdpPlan::coded_bytes(std::size_t bucket) const {
  if (!sparse.empty()) return sparse[bucket].bytes;
  if (!low_rank.empty())
    return std::int64_t{sizeof(float)} * (low_rank[bucket].first + low_rank[bucket].second);
  std::int64_t bytes = 0;
  for (auto const& piece : coded)
    if (piece.bucket == bucket) bytes += ceil_div(piece.range.size(), piece.slice) * piece.wire;
  return bytes;
}

}  // namespace stratagem
