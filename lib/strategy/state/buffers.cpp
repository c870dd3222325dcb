#include "strategy/state/buffers.hpp"

#include <algorithm>
#include <span>
#include <string>

#include <ATen/ATen.h>

#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "gpu/memory.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

at::ScalarType type_of(BufferSpec const& spec, Precision precision) {
  return spec.type == at::kFloat ? master_type(precision) : spec.type;
}

/// A line of a worker: its number, and of each buffer elements and digest.
std::string line_of(int worker, Buffers const& buffers) {
  auto line = std::to_string(worker);
  for (auto const& of_block : buffers)
    for (auto const& buffer : of_block) {
      auto const here = buffer.cpu().contiguous();
      std::span const bytes(static_cast<std::byte const*>(here.data_ptr()), here.nbytes());
      line += str(' ', buffer.numel(), ' ', Hash().add(bytes).hex());
    }
  return line + '\n';
}

/// What all ranks know of all workers.
struct Roll {
  std::vector<std::vector<int>> ranks;  ///< the workers that each plays
  std::vector<bool> differ;             ///< of each buffer: some worker has other values
  std::int64_t elements = 0;            ///< of those of one worker

  std::size_t most() const {
    return std::ranges::max_element(ranks, {}, &std::vector<int>::size)->size();
  }
};

Roll roll_of(std::vector<std::string> const& texts) {
  Roll roll;
  std::vector<std::string> first;
  for (auto const& text : texts) {
    auto& workers = roll.ranks.emplace_back();
    for (auto const& line : split(text, '\n')) {
      if (line.empty()) continue;
      auto const words = split(line, ' ');
      workers.push_back(std::stoi(words.front()));
      if (first.empty()) first = words;
      roll.differ.resize(words.size() / 2);
      for (std::size_t i = 2; i < words.size(); i += 2)
        if (words[i] != first[i]) roll.differ[i / 2 - 1] = true;
    }
  }
  for (std::size_t i = 0; i < roll.differ.size(); ++i)
    if (roll.differ[i]) roll.elements += std::stoll(first[2 * i + 1]);
  return roll;
}

/// All elements of the chosen ones, one after the other, as double, which changes none of them.
at::Tensor flatten(Buffers const& buffers, std::vector<bool> const& chosen) {
  std::vector<at::Tensor> pieces{at::empty({0}, at::kDouble)};
  std::size_t number = 0;
  for (auto const& of_block : buffers)
    for (auto const& buffer : of_block)
      if (chosen[number++]) pieces.push_back(buffer.flatten().to(at::kDouble));
  if (pieces.size() > 1) pieces.erase(pieces.begin());
  return at::cat(pieces);
}

/// As `like`, the chosen ones with the values of `flat`, from `offset` on, which moves.
Buffers unpack(at::Tensor const& flat, std::int64_t& offset, Buffers const& like,
               std::vector<bool> const& chosen) {
  Buffers buffers;
  std::size_t number = 0;
  for (auto const& of_block : like) {
    auto& copies = buffers.emplace_back();
    for (auto const& buffer : of_block) {
      if (!chosen[number++]) {
        copies.push_back(buffer);
        continue;
      }
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
  auto const as_first = [&](at::Tensor const& other) { return other.equal(workers.front()); };
  if (!mean.is_floating_point() || std::ranges::all_of(workers, as_first)) return mean;
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

/// What is the same everywhere, as frozen parameters are, is not sent.
Buffers average(std::map<int, Buffers> const& own, Communicator& communicator) {
  std::string text;
  for (auto const& [worker, buffers] : own) text += line_of(worker, buffers);
  auto const roll = roll_of(gather_texts(communicator, text));
  if (roll.elements == 0)
    return own.empty() ? Buffers() : average(std::vector<Buffers>{own.begin()->second});

  auto const room = static_cast<std::int64_t>(roll.most()) * roll.elements;
  auto const mine = communicator.allocate(room, at::kDouble);
  auto const all = communicator.allocate(room * communicator.size(), at::kDouble);
  std::int64_t place = 0;
  for (auto const& [_, buffers] : own)
    mine.narrow(0, roll.elements * place++, roll.elements).copy_(flatten(buffers, roll.differ));
  communicator.all_gather(all, mine).wait_on_stream();
  if (own.empty()) return {};
  std::map<int, Buffers> of_all;  // by worker
  for (std::size_t rank = 0; rank < roll.ranks.size(); ++rank) {
    auto offset = static_cast<std::int64_t>(rank) * room;
    for (auto const worker : roll.ranks[rank])
      of_all[worker] = unpack(all, offset, own.begin()->second, roll.differ);
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
