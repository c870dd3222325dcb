#include "strategy/serial/worker_sums.hpp"

#include <span>
#include <string>

#include <ATen/ATen.h>

#include "compress/codec.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/codes/low_rank_gradients.hpp"
#include "strategy/codes/sparse_gradients.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t number_bytes = sizeof(float);

FlatRange all(ParameterLayout const& layout) {
  return {0, layout.size()};
}

class PlainSums final : public WorkerSums {
 public:
  void add(int worker, at::Tensor const& gradients, at::Tensor const& sum, std::int64_t) override {
    if (worker > 0) sum.add_(gradients);
  }
  void finish(at::Tensor const&, std::int64_t) override {}
};

/// Of codes that write blocks.
class CodedSums final : public WorkerSums {
 public:
  CodedSums(SerialConfig const& config, StrategyParts const& parts, ParameterLayout const& layout)
      : config_(config),
        layout_(layout),
        codec_(config.compression.code, config.compression.rounding, parts.seed) {
    if (!config.compression.error_feedback) return;
    for (int stage = 0; stage < stages(config); ++stage)
      residuals_.push_back(at::zeros({layout.size()}, at::kFloat));
  }

  /// Of each worker, and maybe of their sum.
  static int stages(SerialConfig const& config) {
    return config.emulate_ranks + (config.compressed_sums ? 1 : 0);
  }
  static std::int64_t bytes_held(SerialConfig const& config, ParameterLayout const& layout) {
    return config.compression.error_feedback ? stages(config) * layout.size() * number_bytes : 0;
  }

  void add(int worker, at::Tensor const& gradients, at::Tensor const& sum,
           std::int64_t step) override {
    pass_through_code(gradients, worker, step);
    if (worker > 0) sum.add_(gradients);
  }
  void finish(at::Tensor const& sum, std::int64_t step) override {
    if (config_.compressed_sums) pass_through_code(sum, config_.emulate_ranks, step);
  }

  std::vector<ParameterState> state() const override {
    std::vector<ParameterState> states;
    for (std::size_t stage = 0; stage < residuals_.size(); ++stage) {
      auto const worker = static_cast<int>(stage);
      bool const of_sum = worker == config_.emulate_ranks;
      states.push_back(of_worker(of_sum ? Compression::residual_of_sum : Compression::residual,
                                 layout_, residuals_[stage],
                                 of_sum ? ParameterState::all_workers : worker));
    }
    return states;
  }

 private:
  /// Replaces gradients by what is read of their code, of a worker or of the sum of all.
  void pass_through_code(at::Tensor const& gradients, int stage, std::int64_t step) {
    auto const residual =
        residuals_.empty() ? at::Tensor() : residuals_[static_cast<std::size_t>(stage)];
    codec_.pass_through(numbers_of(gradients), numbers_of(residual), {step, stage, 0});
    for (auto const& tensor : {gradients, residual})
      clear_padding(layout_, all(layout_), numbers_of(tensor));
  }

  SerialConfig config_;
  ParameterLayout layout_;
  Codec codec_;
  std::vector<at::Tensor> residuals_;  ///< by stage; empty without feedback
};

/// Of a few elements of each tensor.
class SparseSums final : public WorkerSums {
 public:
  SparseSums(SerialConfig const& config, StrategyParts const& parts, ParameterLayout const& layout)
      : layout_(layout),
        message_(sparse_message(config.compression, layout, all(layout))),
        code_(config.compression, parts.optimizer, parts.seed),
        wire_(at::zeros({message_.bytes}, at::kByte)) {
    for (int worker = 0; worker < config.emulate_ranks; ++worker)
      memories_.emplace_back(config.compression, layout);
  }

  static std::int64_t bytes_held(SerialConfig const& config, ParameterLayout const& layout) {
    auto const& code = config.compression;
    auto const memories = (code.error_feedback ? 1 : 0) + (code.momentum_correction ? 1 : 0);
    return sparse_message(code, layout, all(layout)).bytes +
           config.emulate_ranks * memories * layout.size() * number_bytes;
  }

  void add(int worker, at::Tensor const& gradients, at::Tensor const& sum,
           std::int64_t step) override {
    std::span<std::byte> const wire(data_of(wire_), static_cast<std::size_t>(wire_.numel()));
    auto const& memory = memories_[static_cast<std::size_t>(worker)];
    code_.encode(message_, numbers_of(gradients), memory, step, wire);
    if (worker == 0) sum.zero_();
    code_.add(message_, wire, step, numbers_of(sum));
  }
  void finish(at::Tensor const&, std::int64_t) override {}

  std::vector<ParameterState> state() const override {
    std::vector<ParameterState> states;
    for (std::size_t worker = 0; worker < memories_.size(); ++worker)
      for (auto const& [kind, own] : kinds_of(memories_[worker]))
        states.push_back(of_worker(kind, layout_, own, static_cast<int>(worker)));
    return states;
  }

 private:
  ParameterLayout layout_;
  SparseMessage message_;
  SparseGradients code_;
  at::Tensor wire_;                     ///< of the present worker
  std::vector<SparseMemory> memories_;  ///< by worker
};

/// Of products of thin matrices.
class LowRankSums final : public WorkerSums {
 public:
  LowRankSums(SerialConfig const& config, StrategyParts const& parts, ParameterLayout const& layout)
      : layout_(layout),
        plan_(low_rank_plan(config.compression.matrix_rank, layout, all(layout))),
        code_(config.compression.matrix_rank, parts.seed),
        first_(at::zeros({plan_.first}, at::kFloat)),
        own_first_(at::zeros_like(first_)),
        second_(at::zeros({plan_.second}, at::kFloat)),
        own_second_(at::zeros_like(second_)) {
    for (int worker = 0; worker < config.emulate_ranks; ++worker)
      residuals_.push_back(at::zeros({layout.size()}, at::kFloat));
  }

  static std::int64_t bytes_held(SerialConfig const& config, ParameterLayout const& layout) {
    auto const plan = low_rank_plan(config.compression.matrix_rank, layout, all(layout));
    return (2 * (plan.first + plan.second) + config.emulate_ranks * layout.size()) * number_bytes;
  }

  void add(int worker, at::Tensor const& gradients, at::Tensor const&, std::int64_t step) override {
    if (worker == 0) code_.revive(plan_, second_, step);
    auto const& own = worker == 0 ? first_ : own_first_;
    code_.add(plan_, gradients, residuals_[static_cast<std::size_t>(worker)], second_, own);
    if (worker > 0) first_.add_(own);
  }
  void finish(at::Tensor const& sum, std::int64_t) override {
    code_.orthogonalise(plan_, first_);
    for (std::size_t worker = 0; worker < residuals_.size(); ++worker) {
      auto const& own = worker == 0 ? second_ : own_second_;
      code_.subtract(plan_, first_, residuals_[worker], own);
      if (worker > 0) second_.add_(own);
    }
    code_.multiply(plan_, first_, second_, sum);
  }

  std::vector<ParameterState> state() const override {
    std::vector<ParameterState> states;
    for (std::size_t worker = 0; worker < residuals_.size(); ++worker)
      states.push_back(
          of_worker(Compression::residual, layout_, residuals_[worker], static_cast<int>(worker)));
    states.push_back({.kind = std::string(Compression::right_factor),
                      .pieces = code_.pieces_of(plan_, second_)});
    return states;
  }

 private:
  ParameterLayout layout_;
  LowRankPlan plan_;
  LowRankGradients code_;
  at::Tensor first_, own_first_;       ///< the sum so far, and a worker's own
  at::Tensor second_, own_second_;     ///< the same; the sum stays for the next step
  std::vector<at::Tensor> residuals_;  ///< by worker
};

}  // namespace

std::unique_ptr<WorkerSums> make_worker_sums(SerialConfig const& config, StrategyParts const& parts,
                                             ParameterLayout const& layout) {
  auto const& compression = config.compression;
  if (!compression.on()) return std::make_unique<PlainSums>();
  refuse_codes_on_gpu(parts.device);
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  if (compression.sparse()) return std::make_unique<SparseSums>(config, parts, layout);
  if (compression.low_rank()) return std::make_unique<LowRankSums>(config, parts, layout);
  return std::make_unique<CodedSums>(config, parts, layout);
}

std::int64_t bytes_held_by_sums(SerialConfig const& config, ParameterLayout const& layout) {
  auto const& compression = config.compression;
  if (!compression.on()) return 0;
  if (compression.sparse()) return SparseSums::bytes_held(config, layout);
  if (compression.low_rank()) return LowRankSums::bytes_held(config, layout);
  return CodedSums::bytes_held(config, layout);
}

}  // namespace stratagem
