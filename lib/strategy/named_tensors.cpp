#include "strategy/named_tensors.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/text.hpp"

namespace stratagem {

void append(NamedTensors& tensors, ParameterSpec const& spec, at::Tensor const& parameter) {
  at::NoGradGuard const no_grad;
  auto const on_cpu = parameter.cpu();
  if (!spec.is_part()) {
    tensors.emplace_back(spec.name, on_cpu.clone(at::MemoryFormat::Contiguous));
    return;
  }
  auto whole = std::ranges::find_if(tensors, [&](auto const& t) { return t.first == spec.name; });
  if (whole == tensors.end()) {
    auto shape = spec.shape;
    shape.front() = spec.total_rows;
    whole = tensors.insert(tensors.end(), {spec.name, at::empty(shape, on_cpu.options())});
  }
  whole->second.narrow(0, spec.row_begin, spec.shape.front()).copy_(on_cpu);
}

std::string label_of(ParameterSpec const& spec) {
  if (!spec.is_part()) return spec.name;
  return str(spec.name, "[", spec.row_begin, ":", spec.row_begin + spec.shape.front(), "]");
}

at::Tensor find(std::map<std::string, at::Tensor> const& tensors, ParameterSpec const& spec) {
  auto const found = tensors.find(spec.name);
  if (found == tensors.end()) return {};
  return spec.is_part() ? found->second.narrow(0, spec.row_begin, spec.shape.front())
                        : found->second;
}

void add(Hash& hash, NamedTensors const& tensors) {
  for (auto const& [name, tensor] : tensors) {
    auto const bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    hash.add(name).add(std::span(static_cast<std::byte const*>(tensor.data_ptr()), bytes));
  }
}

}  // namespace stratagem
