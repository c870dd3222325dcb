#include "strategy/buffers.hpp"

#include <numeric>

#include <ATen/ATen.h>

#include "gpu/memory.hpp"
#include "strategy/model_layout.hpp"

namespace stratagem {
namespace {

at::ScalarType type_of(BufferSpec const& spec, Precision precision) {
  return spec.type == at::kFloat ? master_type(precision) : spec.type;
}

/// The shapes and types of `like` with the values of `flat`, from `offset` on, which moves.
Buffers unpack(at::Tensor const& flat, std::int64_t& offset, Buffers const& like) {
  Buffers buffers;
  for (auto const& of_block : like) {
    auto& copies = buffers.emplace_back();
    for (auto const& buffer : of_block) {
      auto const values = flat.narrow(0, offset, buffer.numel());
      copies.push_back(values.view(buffer.sizes()).to(buffer.scalar_type()));
      offset += buffer.numel();
    }
  }
  return buffers;
}

}  // namespace

Buffers make_buffers(Model const& model, gpu::Device const& device, Precision precision) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::buffers, device);
  Buffers buffers;
  for (auto const& block : model.blocks) {
    auto& of_block = buffers.emplace_back();
    for (auto const& spec : block->declaration().buffers())
      of_block.push_back(
          at::full(spec.shape, spec.value,
                   at::TensorOptions().dtype(type_of(spec, precision)).device(device.torch())));
  }
  return buffers;
}

std::int64_t buffer_bytes(Model const& model, Precision precision) {
  std::int64_t bytes = 0;
  for (auto const& block : model.blocks)
    for (auto const& spec : block->declaration().buffers()) {
      std::int64_t numel = 1;
      for (auto extent : spec.shape) numel *= extent;
      bytes += numel * size_of(type_of(spec, precision));
    }
  return bytes;
}

at::Tensor average(std::vector<at::Tensor> const& workers) {
  at::NoGradGuard const no_grad;
  auto mean = workers.front().clone();
  if (!mean.is_floating_point() || workers.size() == 1) return mean;
  for (std::size_t worker = 1; worker < workers.size(); ++worker) mean.add_(workers[worker]);
  return mean.mul_(1.0 / static_cast<double>(workers.size()));
}

Buffers average(std::vector<Buffers> const& workers) {
  Buffers result = workers.front();
  for (std::size_t block = 0; block < result.size(); ++block)
    for (std::size_t i = 0; i < result[block].size(); ++i) {
      std::vector<at::Tensor> theirs;
      for (auto const& worker : workers) theirs.push_back(worker[block][i]);
      result[block][i] = average(theirs);
    }
  return result;
}

Buffers average(Buffers const& own, Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return average(own, communicator, ranks);
}

Buffers average(Buffers const& own, Communicator& communicator, std::span<int const> workers) {
  std::vector<at::Tensor> pieces;
  for (auto const& of_block : own)
    for (auto const& buffer : of_block) pieces.push_back(buffer.flatten().to(at::kDouble));
  if (pieces.empty()) return own;
  auto const flat = at::cat(pieces);
  auto const all = at::empty({flat.numel() * communicator.size()}, flat.options());
  communicator.all_gather(all, flat).wait_on_stream();

  std::vector<Buffers> theirs;
  for (int const worker : workers) {
    auto offset = worker * flat.numel();
    theirs.push_back(unpack(all, offset, own));
  }
  return average(theirs);
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

void load(Model const& model, std::map<std::string, at::Tensor> const& tensors, Buffers& buffers) {
  at::NoGradGuard const no_grad;
  for (std::size_t block = 0; block < buffers.size(); ++block) {
    auto const& specs = model.blocks[block]->declaration().buffers();
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (auto const given = tensors.find(specs[i].name); given != tensors.end())
        buffers[block][i].copy_(given->second);
  }
}

}  // namespace stratagem
