#include "strategy/state/buffers.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "gpu/memory.hpp"
#include "strategy/shared/model_layout.hpp"

namespace stratagem {
namespace {

at::ScalarType type_of(BufferSpec const& spec, Precision precision) {
  return spec.type == at::kFloat ? master_type(precision) : spec.type;
}

/// All elements one after the other, as double, which changes none of them.
at::Tensor flatten(Buffers const& buffers) {
  std::vector<at::Tensor> pieces{at::empty({0}, at::kDouble)};
  for (auto const& of_block : buffers)
    for (auto const& buffer : of_block) pieces.push_back(buffer.flatten().to(at::kDouble));
  if (pieces.size() > 1) pieces.erase(pieces.begin());
  return at::cat(pieces);
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

Buffers average(std::map<int, Buffers> const& own, Communicator& communicator) {
  std::vector<at::Tensor> flat;
  std::string text;  // elements of a worker, and whom this rank plays
  for (auto const& [worker, buffers] : own) {
    flat.push_back(flatten(buffers));
    text += str(text.empty() ? str(flat.back().numel(), ' ') : "", worker, ' ');
  }
  std::vector<std::vector<std::int64_t>> ranks;
  std::int64_t each = 0;
  std::size_t most = 0;  // workers of a rank
  for (auto const& theirs : gather_texts(communicator, text)) {
    auto& numbers = ranks.emplace_back(parse_integers(theirs));
    if (numbers.empty()) continue;
    each = numbers.front();
    most = std::max(most, numbers.size() - 1);
  }
  if (each == 0) return own.empty() ? Buffers() : own.begin()->second;

  auto const room = static_cast<std::int64_t>(most) * each;
  auto const mine = communicator.allocate(room, at::kDouble);
  auto const all = communicator.allocate(room * communicator.size(), at::kDouble);
  for (std::size_t i = 0; i < flat.size(); ++i)
    mine.narrow(0, static_cast<std::int64_t>(i) * each, each).copy_(flat[i]);
  communicator.all_gather(all, mine).wait_on_stream();
  if (own.empty()) return {};
  std::map<std::int64_t, Buffers> of_all;  // by worker
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto offset = static_cast<std::int64_t>(rank) * room;
    for (std::size_t i = 1; i < ranks[rank].size(); ++i)
      of_all[ranks[rank][i]] = unpack(all, offset, own.begin()->second);
  }
  std::vector<Buffers> workers;
  for (auto& [_, buffers] : of_all) workers.push_back(std::move(buffers));
  return average(workers);
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

void load(Model const& model, std::map<std::string, at::Tensor> const& tensors,
          Buffers const& buffers) {
  at::NoGradGuard const no_grad;
  for (std::size_t block = 0; block < buffers.size(); ++block) {
    auto const& specs = model.blocks[block]->declaration().buffers();
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (auto const given = tensors.find(specs[i].name); given != tensors.end())
        buffers[block][i].copy_(given->second);
  }
}

}  // namespace stratagem
