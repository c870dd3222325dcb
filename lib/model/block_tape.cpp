#include "model/block_tape.hpp"

#include <set>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "base/contract.hpp"
#include "gpu/memory.hpp"

namespace stratagem {
namespace {

/// Of every block: which of the frame's parameters some later block uses too.
std::vector<std::vector<bool>> used_later(Blocks const& blocks) {
  std::set<std::string> seen;  // of the blocks after the present one
  std::vector<std::vector<bool>> shared(blocks.size());
  for (auto i = blocks.size(); i-- > 0;) {
    auto const& declaration = blocks[i]->declaration();
    for (auto const& spec : declaration.parameters())
      shared[i].push_back(!spec.is_part() && seen.contains(spec.name));
    for (auto const& name : declaration.borrowed()) shared[i].push_back(!seen.insert(name).second);
  }
  return shared;
}

}  // namespace

BlockTape::BlockTape(Blocks const& blocks, Recompute recompute)
    : blocks_(blocks), recompute_(recompute), shared_(used_later(blocks)), kept_(blocks.size()) {}

at::Tensor BlockTape::forward(int block, at::Tensor const& x, Frame const& frame) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::activations);
  bool const again = recompute_.applies_to(block);
  auto& kept = slot(block);
  kept.input = x.detach().requires_grad_(block - part(block).index > 0);
  kept.parameters.assign(frame.parameters.begin(), frame.parameters.end());
  if (again) {
    kept.buffers.assign(frame.buffers.begin(), frame.buffers.end());
    kept.context = frame.context;
  }
  at::AutoGradMode const graph(!again);
  kept.output = blocks_[static_cast<std::size_t>(block)]->forward(kept.input, frame);
  at::NoGradGuard const joining;
  return join(block, x);
}

at::Tensor BlockTape::infer(int block, at::Tensor const& x, Frame const& frame) {
  at::NoGradGuard const no_gradients;
  auto const [index, count] = part(block);
  slot(block).output = blocks_[static_cast<std::size_t>(block)]->forward(x, frame);
  auto result = join(block, x);
  if (index == count - 1)
    for (int i = block - index; i <= block; ++i) slot(i) = {};
  return result;
}

at::Tensor BlockTape::backward(int block, at::Tensor const& grad_output,
                               std::span<at::Tensor const> gradients, GradWrite write) {
  auto const [index, count] = part(block);
  expects(slot(block).output.defined(), "backward follows forward");
  expects(gradients.size() == slot(block).parameters.size(), "one gradient per parameter");
  auto const own_gradient = own_slice(block, grad_output);
  auto kept = std::exchange(slot(block), {});
  if (recompute_.applies_to(block)) recompute(block, kept);

  auto wanted = std::move(kept.parameters);
  if (kept.input.requires_grad()) wanted.push_back(kept.input);
  if (!wanted.empty()) {
    auto fresh = torch::autograd::grad({kept.output}, wanted, {own_gradient},
                                       /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                       /*allow_unused=*/true);
    if (kept.input.requires_grad()) {
      if (index == count - 1)
        input_gradient_ = std::move(fresh.back());
      else
        input_gradient_.add_(fresh.back());
      fresh.pop_back();
    }
    land(block, gradients, fresh, write);
  }
  return index > 0 ? grad_output : std::exchange(input_gradient_, {});
}

/// One multi-tensor call for all gradients that replace others, one for those that are added. An
/// undefined gradient means zero.
void BlockTape::land(int block, std::span<at::Tensor const> gradients,
                     std::span<at::Tensor const> fresh, GradWrite write) const {
  std::vector<at::Tensor> to, from, sums, terms;
  auto const& shared = shared_[static_cast<std::size_t>(block)];
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    bool const adds = write == GradWrite::accumulate || shared[i];
    if (fresh[i].defined()) {
      (adds ? sums : to).push_back(gradients[i]);
      (adds ? terms : from).push_back(fresh[i]);
    } else if (!adds) {
      gradients[i].zero_();
    }
  }
  if (!to.empty()) at::_foreach_copy_(to, from);
  if (!sums.empty()) at::_foreach_add_(sums, terms);
}

/// Replaces the output by one that is connected to the graph.
void BlockTape::recompute(int block, Kept& kept) const {
  gpu::MemoryScope const scope(gpu::MemoryCategory::activations);
  at::AutoGradMode const graph(true);
  kept.output.reset();
  for (auto& buffer : kept.buffers) buffer = buffer.clone();
  kept.output = blocks_[static_cast<std::size_t>(block)]->forward(
      kept.input, {kept.parameters, kept.buffers, kept.context});
}

/// The result of forward, after the block's own output was kept.
at::Tensor BlockTape::join(int block, at::Tensor const& x) const {
  auto const [index, count] = part(block);
  if (count == 1) return kept_[static_cast<std::size_t>(block)].output.detach();
  if (index < count - 1) return x;
  std::vector<at::Tensor> outputs;
  for (int i = block - index; i <= block; ++i)
    outputs.push_back(kept_[static_cast<std::size_t>(i)].output);
  return at::cat(outputs, 1);
}

/// The columns of the joined output (or of its gradient) that belong to this part.
at::Tensor BlockTape::own_slice(int block, at::Tensor const& joined) const {
  auto const [index, count] = part(block);
  if (count == 1) return joined;
  std::int64_t begin = 0;
  for (int i = block - index; i < block; ++i)
    begin += kept_[static_cast<std::size_t>(i)].output.size(1);
  return joined.narrow(1, begin, kept_[static_cast<std::size_t>(block)].output.size(1));
}

int BlockTape::first_non_finite() const {
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (auto const& output = kept_[i].output;
        output.defined() && !at::isfinite(output).all().item<bool>())
      return static_cast<int>(i);
  return -1;
}

void BlockTape::clear() {
  kept_.assign(kept_.size(), {});
  input_gradient_.reset();
}

}  // namespace stratagem
