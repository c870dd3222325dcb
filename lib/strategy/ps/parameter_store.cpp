#include "strategy/ps/parameter_store.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/contract.hpp"
#include "base/simd.hpp"
#include "comm/reduction.hpp"
#include "gpu/memory.hpp"
#include "strategy/ps/elements.hpp"

namespace stratagem {
namespace {

using Momentum = ServerPolicy::Momentum;

constexpr std::int64_t grain = 1 << 16;
constexpr std::int64_t gap_stride = 64;
constexpr std::int64_t learnt_at_once = 1 << 20;  // which bounds the copy

// Function multiversioning applies to plain functions: one per type.

/// out <- p - factor m; out may be p.
STRATAGEM_SIMD_CLONES void look_ahead(float* out, float const* p, float const* m, std::int64_t n,
                                      float factor) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = p[i] - factor * m[i];
}
STRATAGEM_SIMD_CLONES void look_ahead(double* out, double const* p, double const* m, std::int64_t n,
                                      double factor) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = p[i] - factor * m[i];
}

/// sum <- sum + weight g
STRATAGEM_SIMD_CLONES void add_weighted(float* sum, float const* g, std::int64_t n, float weight) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = sum[i] + weight * g[i];
}
STRATAGEM_SIMD_CLONES void add_weighted(double* sum, double const* g, std::int64_t n,
                                        double weight) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = sum[i] + weight * g[i];
}

template <class T>
double distance_of(T const* a, T const* b, std::int64_t n, std::int64_t stride_a,
                   std::int64_t stride_b) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    auto const change = static_cast<double>(a[i * stride_a]) - static_cast<double>(b[i * stride_b]);
    sum += change * change;
  }
  return std::sqrt(sum / static_cast<double>(n));
}

/// Root mean square of the difference.
double distance(at::Tensor const& a, at::Tensor const& b) {
  return a.scalar_type() == at::kFloat ? distance_of(a.data_ptr<float>(), b.data_ptr<float>(),
                                                     a.numel(), a.stride(0), b.stride(0))
                                       : distance_of(a.data_ptr<double>(), b.data_ptr<double>(),
                                                     a.numel(), a.stride(0), b.stride(0));
}

at::Tensor sampled(at::Tensor const& tensor) {
  return tensor.slice(0, 0, tensor.numel(), gap_stride);
}

std::byte* bytes(at::Tensor const& tensor, std::int64_t element = 0) {
  return static_cast<std::byte*>(tensor.data_ptr()) +
         element * static_cast<std::int64_t>(tensor.element_size());
}

void sum_range(std::vector<at::Tensor> const& tensors, at::Tensor const& out, FlatRange range) {
  at::parallel_for(range.begin, range.end, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::byte const*> sources;
    for (auto const& tensor : tensors) sources.push_back(bytes(tensor, begin));
    sum_in_order(sources, bytes(out, begin), end - begin, out.scalar_type());
  });
}

std::vector<at::Tensor> several_like(at::Tensor const& tensor, int count) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(at::zeros_like(tensor));
  return tensors;
}

}  // namespace

double momentum_of(OptimizerConfig const& optimizer) {
  auto const* sgd = std::get_if<SgdConfig>(&optimizer.rule);
  return sgd == nullptr ? 0 : sgd->momentum;
}

bool sends_parameters(ServerPolicy const& policy, OptimizerConfig const& optimizer) {
  return !policy.asynchronous() &&
         (policy.momentum != Momentum::look_ahead || momentum_of(optimizer) == 0);
}

StoreMemory make_store_memory(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                              int workers, at::Tensor parameters) {
  StoreMemory memory{.parameters = std::move(parameters)};
  {
    gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, {});
    memory.slots = several_like(memory.parameters, workers);
  }
  gpu::MemoryScope const scope(gpu::MemoryCategory::parameters, {});
  if (sends_parameters(policy, optimizer))
    memory.outgoing = {memory.parameters};
  else
    memory.outgoing = several_like(memory.parameters, policy.asynchronous() ? workers : 1);
  return memory;
}

StoreMemory StoreMemory::part(FlatRange range) const {
  if (range.begin == 0 && range.size() == parameters.numel()) return *this;
  auto const part_of = [&](at::Tensor const& whole) {
    return whole.narrow(0, range.begin, range.size());
  };
  StoreMemory part{.parameters = part_of(parameters)};
  for (auto const& slot : slots) part.slots.push_back(part_of(slot));
  for (auto const& out : outgoing) part.outgoing.push_back(part_of(out));
  return part;
}

ParameterStore::ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                               StoreMemory memory, std::vector<FlatRange> const& vectors)
    : policy_(policy),
      momentum_factor_(momentum_of(optimizer)),
      mean_(optimizer.reduction == Reduction::mean),
      memory_(std::move(memory)),
      correction_(policy, parameters()) {
  expects(parameters().is_cpu() && parameters().dim() == 1, "a flat CPU tensor");
  if (policy.collects()) {
    gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, {});
    collected_ = at::zeros_like(parameters());
  }
  gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, {});
  bool const one = policy.momentum == Momentum::shared || !policy.asynchronous();
  auto rule = optimizer;
  if (looks_ahead()) std::get<SgdConfig>(rule.rule).nesterov = true;
  auto const count = one ? 1 : memory_.slots.size();
  for (std::size_t i = 0; i < count; ++i)
    optimizers_.push_back(
        make_optimizer(rule, {parameters().numel(), vectors}, parameters().options()));
}

Optimizer& ParameterStore::optimizer_of(int worker) {
  return *optimizers_[optimizers_.size() == 1 ? 0 : static_cast<std::size_t>(worker)];
}

void ParameterStore::add_up(FlatRange range) {
  if (memory_.slots.size() > 1) sum_range(memory_.slots, sum(), range);
}

void ParameterStore::apply_sum(FlatRange range, double lr, double factor) {
  optimizers_.front()->update(range, parameters().narrow(0, range.begin, range.size()),
                              sum().narrow(0, range.begin, range.size()), lr, factor);
}

void ParameterStore::publish(FlatRange range, double lr) {
  if (outgoing().is_same(parameters())) return;
  auto const factor = lr * momentum_factor_;
  auto const part = [&](at::Tensor const& of) { return of.narrow(0, range.begin, range.size()); };
  for_pieces([factor](std::int64_t n, auto* to, auto const* p,
                      auto const* m) { look_ahead(to, p, m, n, as_element(to, factor)); },
             part(outgoing()), part(parameters()), part(momentum()));
}

void ParameterStore::apply(int worker, PushScale const& scale) {
  correct(worker, scale.factor);
  update(optimizer_of(worker), slot(worker), scale.lr,
         scale.factor * scale.weight / policy_.pushes);
}

void ParameterStore::collect(int worker, PushScale const& scale) {
  correct(worker, scale.factor);
  auto const weight = scale.factor * scale.weight / policy_.pushes;
  for_pieces([weight](std::int64_t n, auto* sum,
                      auto const* g) { add_weighted(sum, g, n, as_element(sum, weight)); },
             collected_, slot(worker));
  ++collected_count_;
  collected_lr_ = scale.lr;
}

void ParameterStore::apply_collected() {
  auto const scale = mean_ ? 1 / static_cast<double>(collected_count_) : 1.0;
  update(*optimizers_.front(), collected_, collected_lr_, scale);
  collected_.zero_();
  collected_count_ = 0;
}

void ParameterStore::correct(int worker, double factor) {
  correction_.correct(slot(worker), parameters(), handed(worker), factor);
}

void ParameterStore::update(Optimizer& optimizer, at::Tensor const& gradient, double lr,
                            double scale) {
  look_from(lr);
  optimizer.begin_update();
  auto const elements = parameters().numel();
  if (!correction_.learns())
    return optimizer.update({0, elements}, parameters(), gradient, lr, scale);
  correction_.begin_update();
  for (std::int64_t begin = 0; begin < elements; begin += learnt_at_once) {
    FlatRange const range{begin, std::min(begin + learnt_at_once, elements)};
    auto const part = [&](at::Tensor const& of) { return of.narrow(0, begin, range.size()); };
    auto const before = part(parameters()).clone();
    optimizer.update(range, part(parameters()), part(gradient), lr, scale);
    correction_.learn(range, before, part(parameters()));
  }
}

void ParameterStore::take(int worker, PushScale const& scale, bool completes) {
  if (completes && collected_count_ == 0) return apply(worker, scale);
  collect(worker, scale);
  if (completes) apply_collected();
}

bool ParameterStore::looks_ahead() const {
  return policy_.asynchronous() && policy_.momentum == Momentum::look_ahead &&
         momentum_factor_ != 0;
}

void ParameterStore::begin_round() {
  look_from(0);
  for (auto const& out : memory_.outgoing) out.copy_(parameters());
}

void ParameterStore::hand_out(int worker, double lr) {
  look_from(lr);
  handed(worker).copy_(parameters());
}

void ParameterStore::look_from(double lr) {
  if (!looks_ahead() || lr == ahead_lr_) return;
  auto const sum = momentum();
  auto const factor = (lr - ahead_lr_) * momentum_factor_;
  for_pieces([factor](std::int64_t n, auto* p,
                      auto const* m) { look_ahead(p, p, m, n, as_element(p, factor)); },
             parameters(), sum);
  ahead_lr_ = lr;
}

double ParameterStore::gap(int worker) const {
  return distance(sampled(parameters()), sampled(handed(worker)));
}

at::Tensor ParameterStore::momentum() const {
  if (momentum_factor_ == 0) return {};
  if (optimizers_.size() == 1) return optimizers_.front()->state().front().second;
  auto const sum = at::empty_like(parameters());
  sum_of_momenta(sum);
  return sum;
}

std::map<std::string, double*> ParameterStore::counters() {
  auto all = optimizers_.front()->counters();
  all.merge(correction_.counters());
  return all;
}

std::vector<StoreState> ParameterStore::kept() const {
  std::vector<StoreState> kept;
  auto const& kinds = optimizers_.front()->state();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    auto& [_, terms] = kept.emplace_back(StoreState{kinds[kind].first, {}});
    for (auto const& optimizer : optimizers_) terms.push_back(optimizer->state()[kind].second);
  }
  for (auto const& [kind, tensor] : correction_.state()) kept.push_back({kind, {tensor}});
  return kept;
}

void ParameterStore::sum_of_momenta(at::Tensor const& out) const {
  std::vector<at::Tensor> momenta;
  for (auto const& optimizer : optimizers_) momenta.push_back(optimizer->state().front().second);
  sum_range(momenta, out, {0, out.numel()});
}

}  // namespace stratagem
