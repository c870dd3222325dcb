#include "strategy/replica.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "gpu/memory.hpp"
#include "params/initialise.hpp"

namespace stratagem {

at::ScalarType compute_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return at::kFloat;
    case Precision::bf16:
      return at::kBFloat16;
    case Precision::fp16:
      return at::kHalf;
    case Precision::fp64:
      return at::kDouble;
  }
  return at::kFloat;
}

at::ScalarType master_type(Precision precision) {
  return precision == Precision::fp64 ? at::kDouble : at::kFloat;
}

std::vector<std::vector<ParameterSpec>> parameter_specs(Model const& model) {
  std::vector<std::vector<ParameterSpec>> specs;
  for (auto const& block : model.blocks) specs.push_back(block->declaration().parameters());
  return specs;
}

ParameterLayout make_layout(Model const& model) {
  return {parameter_specs(model), model.memory_format == MemoryFormat::channels_last};
}

Buffers make_buffers(Model const& model, gpu::Device const& device, Precision precision) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::buffers, device);
  Buffers buffers;
  for (auto const& block : model.blocks) {
    auto& of_block = buffers.emplace_back();
    for (auto const& spec : block->declaration().buffers()) {
      auto const type = spec.type == at::kFloat ? master_type(precision) : spec.type;
      of_block.push_back(
          at::full(spec.shape, spec.value, at::TensorOptions().dtype(type).device(device.torch())));
    }
  }
  return buffers;
}

Buffers average(std::vector<Buffers> const& workers) {
  at::NoGradGuard const no_grad;
  Buffers result = workers.front();
  for (std::size_t block = 0; block < result.size(); ++block) {
    for (std::size_t i = 0; i < result[block].size(); ++i) {
      auto& mean = result[block][i];
      mean = mean.clone();
      if (!mean.is_floating_point() || workers.size() == 1) continue;
      for (std::size_t w = 1; w < workers.size(); ++w) mean.add_(workers[w][block][i]);
      mean.mul_(1.0 / static_cast<double>(workers.size()));
    }
  }
  return result;
}

Replica::Replica(Model const& model, Precision precision, gpu::Device const& device,
                 std::uint64_t seed)
    : model_(model), layout_(make_layout(model)) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::parameters, device);
  auto const options = at::TensorOptions().device(device.torch());
  flat_ = at::empty({layout_.size()}, options.dtype(master_type(precision)));
  initialise(flat_, layout_, seed);
  if (compute_type(precision) != master_type(precision))
    rounded_ = flat_.to(compute_type(precision));
  for (int block = 0; block < layout_.blocks(); ++block) {
    auto& of_block = parameters_.emplace_back();
    for (auto const& entry : layout_.entries(block)) {
      auto const& home = rounded_.defined() && !entry.spec.keep_fp32 ? rounded_ : flat_;
      of_block.push_back(view_of(home, entry).detach().requires_grad_());
    }
  }
}

void Replica::refresh(FlatRange range) {
  if (!rounded_.defined() || range.size() == 0) return;
  at::NoGradGuard const no_grad;
  rounded_.narrow(0, range.begin, range.size()).copy_(flat_.narrow(0, range.begin, range.size()));
}

NamedTensors Replica::named(at::Tensor const& flat) const {
  at::NoGradGuard const no_grad;
  NamedTensors tensors;
  for (auto const& entry : layout_.entries()) {
    auto const tensor = view_of(flat, entry).cpu().contiguous();
    if (!entry.spec.is_part()) {
      tensors.emplace_back(entry.spec.name, tensor.clone());
      continue;
    }
    auto whole = std::find_if(tensors.begin(), tensors.end(),
                              [&](auto const& t) { return t.first == entry.spec.name; });
    if (whole == tensors.end()) {
      auto shape = entry.spec.shape;
      shape.front() = entry.spec.total_rows;
      whole = tensors.insert(tensors.end(), {entry.spec.name, at::empty(shape, tensor.options())});
    }
    whole->second.narrow(0, entry.spec.row_begin, tensor.size(0)).copy_(tensor);
  }
  return tensors;
}

void Replica::load(std::map<std::string, at::Tensor> const& tensors, Buffers& buffers) {
  at::NoGradGuard const no_grad;
  for (auto const& entry : layout_.entries()) {
    auto const given = tensors.find(entry.spec.name);
    if (given == tensors.end()) continue;
    auto tensor = given->second;
    if (entry.spec.is_part())
      tensor = tensor.narrow(0, entry.spec.row_begin, entry.spec.shape.front());
    view_of(flat_, entry).copy_(tensor);
  }
  refresh({0, layout_.size()});
  for (std::size_t block = 0; block < buffers.size(); ++block) {
    auto const& specs = model_.blocks[block]->declaration().buffers();
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (auto const given = tensors.find(specs[i].name); given != tensors.end())
        buffers[block][i].copy_(given->second);
  }
}

at::Tensor infer(Replica const& replica, Buffers const& buffers, BlockTape& tape,
                 at::Tensor const& images) {
  Context const context;
  at::Tensor x = images;
  for (int block = 0; block < tape.blocks(); ++block)
    x = tape.infer(block, x,
                   {replica.parameters(block), buffers[static_cast<std::size_t>(block)], context});
  return x;
}

void add(Hash& hash, NamedTensors const& tensors) {
  for (auto const& [name, tensor] : tensors) {
    auto const bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    hash.add(name).add(std::span(static_cast<std::byte const*>(tensor.data_ptr()), bytes));
  }
}

NamedTensors named(Model const& model, Buffers const& buffers) {
  NamedTensors tensors;
  for (std::size_t block = 0; block < buffers.size(); ++block) {
    auto const& specs = model.blocks[block]->declaration().buffers();
    for (std::size_t i = 0; i < specs.size(); ++i)
      tensors.emplace_back(specs[i].name, buffers[block][i].cpu().clone());
  }
  return tensors;
}

}  // namespace stratagem
