#include "model/landing.hpp"

#include <ATen/ATen.h>

#include "gpu/device.hpp"
#include "gpu/landing.hpp"

namespace stratagem {
namespace {

bool is_landing(at::Tensor const& to, at::Tensor const& from) {
  return to.is_cuda() && element_of(to) && element_of(from) && to.sizes() == from.sizes() &&
         to.strides() == from.strides() && to.is_non_overlapping_and_dense();
}

struct Pairs {
  std::vector<at::Tensor> to, from;
};

/// Lands what lies in the same order as its place. What is left.
Pairs land(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from, bool adds) {
  Pairs left;
  std::vector<gpu::Landing> landings;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (is_landing(to[i], from[i])) {
      landings.push_back({to[i].data_ptr(), from[i].data_ptr(), to[i].numel(), *element_of(to[i]),
                          *element_of(from[i]), adds});
    } else {
      left.to.push_back(to[i]);
      left.from.push_back(from[i]);
    }
  }
  if (!landings.empty()) gpu::land(landings, gpu::Device::of(to.front().device()));
  return left;
}

/// LibTorch copies and adds many tensors with one kernel if all have one type.
bool mixed(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from) {
  auto const type = to.front().scalar_type();
  for (auto const* tensors : {&to, &from})
    for (auto const& tensor : *tensors)
      if (tensor.scalar_type() != type) return true;
  return false;
}

bool few_kernels(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from) {
  return to.front().is_cuda() && mixed(to, from);
}

}  // namespace

std::optional<gpu::Element> element_of(at::Tensor const& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return gpu::Element::fp32;
    case at::kBFloat16:
      return gpu::Element::bf16;
    case at::kHalf:
      return gpu::Element::fp16;
    default:
      return std::nullopt;
  }
}

void replace(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from) {
  if (to.empty()) return;
  if (!few_kernels(to, from)) return at::_foreach_copy_(to, from);
  if (auto const left = land(to, from, false); !left.to.empty())
    at::_foreach_copy_(left.to, left.from);
}

void add(std::vector<at::Tensor> const& to, std::vector<at::Tensor> const& from) {
  if (to.empty()) return;
  if (!few_kernels(to, from)) return at::_foreach_add_(to, from);
  if (auto const left = land(to, from, true); !left.to.empty())
    at::_foreach_add_(left.to, left.from);
}

}  // namespace stratagem
