#include "strategy/ps/parameter_store.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/contract.hpp"
#include "base/simd.hpp"
#include "comm/reduction.hpp"
#include "gpu/memory.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t grain = 1 << 16;
constexpr std::int64_t gap_stride = 64;

// Function multiversioning applies to plain functions: one per type.
STRATAGEM_SIMD_CLONES void compensate(float* g, float const* p, float const* base, std::int64_t n,
                                      float lambda) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = g[i] + lambda * g[i] * g[i] * (p[i] - base[i]);
}
STRATAGEM_SIMD_CLONES void compensate(double* g, double const* p, double const* base,
                                      std::int64_t n, double lambda) {
  for (std::int64_t i = 0; i < n; ++i) g[i] = g[i] + lambda * g[i] * g[i] * (p[i] - base[i]);
}

/// out <- p - factor out.
STRATAGEM_SIMD_CLONES void look_ahead(float* out, float const* p, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = p[i] - factor * out[i];
}
STRATAGEM_SIMD_CLONES void look_ahead(double* out, double const* p, std::int64_t n, double factor) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = p[i] - factor * out[i];
}

/// Calls `kernel` with pointers to the elements of the tensors from `begin` on, and how many.
template <class Kernel, class... Tensors>
void for_pieces(Kernel kernel, at::Tensor const& first, Tensors const&... others) {
  at::parallel_for(0, first.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
    if (first.scalar_type() == at::kFloat)
      kernel(end - begin, first.data_ptr<float>() + begin,
             (others.template data_ptr<float>() + begin)...);
    else
      kernel(end - begin, first.data_ptr<double>() + begin,
             (others.template data_ptr<double>() + begin)...);
  });
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

ParameterStore::ParameterStore(ServerPolicy const& policy, OptimizerConfig const& optimizer,
                               int workers, double scale, at::Tensor parameters)
    : policy_(policy),
      momentum_factor_(optimizer.momentum),
      scale_(scale),
      parameters_(std::move(parameters)) {
  expects(parameters_.is_cpu() && parameters_.dim() == 1, "a flat CPU tensor");
  {
    gpu::MemoryScope const scope(gpu::MemoryCategory::optimizer, {});
    int const optimizers = policy.momentum == ServerPolicy::Momentum::shared ? 1 : workers;
    for (int i = 0; i < optimizers; ++i)
      optimizers_.emplace_back(optimizer, parameters_.numel(), parameters_.options());
  }
  {
    gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, {});
    slots_ = several_like(parameters_, workers);
  }
  if (!policy.asynchronous()) return;
  gpu::MemoryScope const scope(gpu::MemoryCategory::parameters, {});
  handed_ = several_like(parameters_, workers);
}

Sgd& ParameterStore::optimizer_of(int worker) {
  return optimizers_.size() == 1 ? optimizers_.front()
                                 : optimizers_[static_cast<std::size_t>(worker)];
}

void ParameterStore::apply_sum(FlatRange range, double lr) {
  auto const& sum = slots_.front();
  if (slots_.size() > 1) sum_range(slots_, sum, range);
  optimizers_.front().step(range, parameters_.narrow(0, range.begin, range.size()),
                           sum.narrow(0, range.begin, range.size()), lr, scale_);
}

void ParameterStore::apply(int worker, double weight, double lr) {
  auto const& gradient = slot(worker);
  if (policy_.correction != 0) {
    auto const lambda = policy_.correction;
    for_pieces(
        [lambda](std::int64_t n, auto* g, auto const* p, auto const* base) {
          compensate(g, p, base, n, static_cast<std::remove_pointer_t<decltype(g)>>(lambda));
        },
        gradient, parameters_, handed(worker));
  }
  optimizer_of(worker).step({0, parameters_.numel()}, parameters_, gradient, lr, scale_ * weight);
}

void ParameterStore::hand_out(int worker, double lr) {
  auto const& out = handed(worker);
  if (policy_.momentum != ServerPolicy::Momentum::look_ahead || momentum_factor_ == 0) {
    out.copy_(parameters_);
    return;
  }
  sum_of_momenta(out);
  auto const factor = lr * momentum_factor_;
  for_pieces(
      [factor](std::int64_t n, auto* to, auto const* p) {
        look_ahead(to, p, n, static_cast<std::remove_pointer_t<decltype(to)>>(factor));
      },
      out, parameters_);
}

double ParameterStore::gap(int worker) const {
  auto const& base = handed(worker);
  auto const of = [&](auto const* now, auto const* then) {
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < base.numel(); i += gap_stride, ++count) {
      auto const change = static_cast<double>(now[i]) - static_cast<double>(then[i]);
      sum += change * change;
    }
    return std::sqrt(sum / static_cast<double>(count));
  };
  return base.scalar_type() == at::kFloat
             ? of(parameters_.data_ptr<float>(), base.data_ptr<float>())
             : of(parameters_.data_ptr<double>(), base.data_ptr<double>());
}

at::Tensor ParameterStore::momentum() const {
  if (momentum_factor_ == 0) return {};
  if (optimizers_.size() == 1) return optimizers_.front().momentum();
  auto const sum = at::empty_like(parameters_);
  sum_of_momenta(sum);
  return sum;
}

std::vector<at::Tensor> ParameterStore::momenta() const {
  std::vector<at::Tensor> momenta;
  for (auto const& optimizer : optimizers_)
    if (optimizer.momentum().defined()) momenta.push_back(optimizer.momentum());
  return momenta;
}

void ParameterStore::sum_of_momenta(at::Tensor const& out) const {
  sum_range(momenta(), out, {0, out.numel()});
}

}  // namespace stratagem
