#include "strategy/state/named_tensors.hpp"

#include <algorithm>
#include <span>

#include <ATen/ATen.h>

#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"

namespace stratagem {
namespace {

/// A line of each tensor.
std::vector<std::string> digests(NamedTensors const& tensors) {
  std::vector<std::string> lines;
  for (auto const& [name, tensor] : tensors) {
    std::span const bytes(static_cast<std::byte const*>(tensor.data_ptr()), tensor.nbytes());
    lines.push_back(str(name, " ", Hash().add(bytes).hex()));
  }
  return lines;
}

std::string joined(std::vector<std::string> lines) {
  std::ranges::sort(lines);
  Hash hash;
  for (auto const& line : lines) hash.add(line);
  return hash.hex();
}

}  // namespace

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

std::string digest_of(NamedTensors const& tensors) {
  return joined(digests(tensors));
}

std::string digest_of(Communicator& communicator, NamedTensors const& own) {
  std::string text;
  for (auto const& line : digests(own)) text += line + '\n';
  std::vector<std::string> all;
  for (auto const& part : gather_texts(communicator, text))
    for (auto const& line : split(part, '\n'))
      if (!line.empty()) all.push_back(line);
  return joined(std::move(all));
}

}  // namespace stratagem
