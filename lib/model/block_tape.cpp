#include "model/block_tape.hpp"

#include <set>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "base/contract.hpp"
#include "gpu/memory.hpp"
#include "model/landing.hpp"

namespace stratagem {

namespace {

/// Undefined where the output does not depend on what they are of.
std::vector<at::Tensor> gradients_of(at::Tensor const& output, std::vector<at::Tensor> const& of,
                                     at::Tensor const& of_output) {
  if (!output.requires_grad() || !of_output.defined()) return std::vector<at::Tensor>(of.size());
  return torch::autograd::grad({output}, of, {of_output}, /*retain_graph=*/std::nullopt,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

}  // namespace

TapePass::TapePass(Blocks const& all, BlockSpan blocks, bool input_gradient)
    : blocks_(blocks),
      input_gradient_(input_gradient),
      uses_(uses_of(all, blocks)),
      kept_(static_cast<std::size_t>(blocks.size())) {
  for (int i = 0; i < blocks.size(); ++i)
    places_.push_back(c10::make_intrusive<GradientPlaces>(branch_));
}

std::vector<std::vector<TapePass::Use>> TapePass::uses_of(Blocks const& all, BlockSpan blocks) {
  std::set<std::string> later;  // borrowed by the blocks after the present one
  std::vector<std::vector<Use>> uses(static_cast<std::size_t>(blocks.size()));
  for (int block = blocks.end - 1; block >= blocks.first; --block) {
    auto& of_block = uses[static_cast<std::size_t>(block - blocks.first)];
    auto const& declaration = all[static_cast<std::size_t>(block)]->declaration();
    for (auto const& spec : declaration.parameters())
      of_block.push_back(later.contains(spec.name) ? Use::first : Use::alone);
    for (auto const& name : declaration.borrowed())
      of_block.push_back(later.insert(name).second ? Use::last : Use::between);
  }
  return uses;
}

int TapePass::first_non_finite() const {
  for (int block = blocks_.first; block < blocks_.end; ++block)
    if (auto const& output = of(block).output;
        output.defined() && !at::isfinite(output).all().item<bool>())
      return block;
  return -1;
}

void TapePass::clear() {
  kept_.assign(kept_.size(), {});
  counters_.clear();
  of_parts_.reset();
  begun_.clear();
}

BlockTape::BlockTape(Blocks const& blocks, Recompute recompute)
    : blocks_(blocks), recompute_(recompute) {}

TapePass BlockTape::begin(BlockSpan range, bool input_gradient) const {
  expects(0 <= range.first && range.first < range.end && range.end <= blocks(),
          "blocks of the model");
  auto const last = block_at(range.end - 1).part();
  expects(block_at(range.first).part().index == 0 && last.index == last.count - 1, "whole layers");
  return {blocks_, range, input_gradient};
}

at::Tensor BlockTape::forward(TapePass& pass, int block, at::Tensor const& x,
                              Frame const& frame) const {
  gpu::MemoryScope const scope(gpu::MemoryCategory::activations);
  bool const again = recompute_.applies_to(block);
  bool const is_first = block - block_at(block).part().index == pass.blocks_.first;
  auto& kept = pass.of(block);
  kept.input = x.detach().requires_grad_(!is_first || pass.input_gradient_);
  kept.parameters.assign(frame.parameters.begin(), frame.parameters.end());
  if (again) {
    kept.buffers.assign(frame.buffers.begin(), frame.buffers.end());
    kept.context = frame.context;
  }
  at::AutoGradMode const graph(!again);
  auto of_block = frame;
  of_block.places = &pass.places(block);
  kept.output = block_at(block).forward(kept.input, of_block);
  at::NoGradGuard const joining;
  if (frame.context.training) count_pass(pass, block, frame);
  return join(pass, block, x);
}

void BlockTape::count_pass(TapePass& pass, int block, Frame const& frame) const {
  auto& counters = pass.counters_;
  auto const& specs = block_at(block).declaration().buffers();
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (specs[i].counts_passes) counters.push_back(frame.buffers[i]);
  if (block + 1 < pass.blocks_.end || counters.empty()) return;
  at::_foreach_add_(counters, 1);
  counters.clear();
}

at::Tensor BlockTape::infer(TapePass& pass, int block, at::Tensor const& x,
                            Frame const& frame) const {
  at::NoGradGuard const no_gradients;
  auto const [index, count] = block_at(block).part();
  pass.of(block).output = block_at(block).forward(x, frame);
  auto result = join(pass, block, x);
  if (index == count - 1)
    for (int i = block - index; i <= block; ++i) pass.of(i) = {};
  return result;
}

at::Tensor BlockTape::backward(TapePass& pass, int block, at::Tensor const& grad_output,
                               std::span<at::Tensor const> gradients, GradWrite write) const {
  auto const [index, count] = block_at(block).part();
  expects(pass.of(block).output.defined(), "backward follows forward");
  expects(gradients.size() == pass.of(block).parameters.size(), "one gradient per parameter");
  auto const own_gradient = own_slice(pass, block, grad_output);
  auto kept = std::exchange(pass.of(block), {});
  if (recompute_.applies_to(block)) recompute(pass, block, kept);

  auto wanted = std::move(kept.parameters);
  if (kept.input.requires_grad()) wanted.push_back(kept.input);
  if (!wanted.empty()) {
    open_places(pass, block, kept.input, gradients, write);
    auto fresh = gradients_of(kept.output, wanted, own_gradient);
    pass.branch_->join();
    if (kept.input.requires_grad()) {
      if (index == count - 1)
        pass.of_parts_ = std::move(fresh.back());
      else if (fresh.back().defined())
        pass.of_parts_.add_(fresh.back());
      fresh.pop_back();
    }
    land(pass, block, gradients, fresh, write);
    pass.places(block).close();
  }
  return index > 0 ? grad_output : std::exchange(pass.of_parts_, {});
}

std::string const& BlockTape::name_of(int block, std::size_t parameter) const {
  auto const& declaration = block_at(block).declaration();
  auto const own = declaration.parameters().size();
  return parameter < own ? declaration.parameters()[parameter].name
                         : declaration.borrowed()[parameter - own];
}

/// Of parameters, those that replace others and come from this block alone. The input's is added
/// to those of later parts in one kernel only on a GPU: a CPU keeps the bits of an addition apart.
void BlockTape::open_places(TapePass& pass, int block, at::Tensor const& input,
                            std::span<at::Tensor const> gradients, GradWrite write) const {
  auto& places = pass.places(block);
  places.open(gradients.size());
  if (pass.of_parts_.defined() && pass.of_parts_.is_cuda()) {
    places.input = input;
    places.of_input = pass.of_parts_;
  }
  if (write == GradWrite::accumulate) return;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (pass.use(block, i) == TapePass::Use::alone) places.places[i] = gradients[i];
}

/// Together, all gradients that replace others, and all that are added. An undefined gradient means
/// zero.
void BlockTape::land(TapePass& pass, int block, std::span<at::Tensor const> gradients,
                     std::span<at::Tensor> fresh, GradWrite write) const {
  std::vector<at::Tensor> to, from, sums, terms;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    auto const use = pass.use(block, i);
    bool const landed = pass.places(block).landed[i];
    bool const begins = use == TapePass::Use::alone || use == TapePass::Use::last;
    if (write == GradWrite::accumulate && use != TapePass::Use::alone) {
      auto& begun = pass.begun_[name_of(block, i)];
      if (use == TapePass::Use::last)
        begun = fresh[i].to(gradients[i].scalar_type());
      else
        begun.add_(fresh[i]);
      if (use != TapePass::Use::first) continue;
      sums.push_back(gradients[i]);
      terms.push_back(std::exchange(begun, {}));
    } else if (!fresh[i].defined()) {
      if (write == GradWrite::overwrite && begins && !landed) gradients[i].zero_();
    } else {
      bool const replaces = write == GradWrite::overwrite && begins && !landed;
      (replaces ? to : sums).push_back(gradients[i]);
      (replaces ? from : terms).push_back(fresh[i]);
    }
  }
  replace(to, from);
  add(sums, terms);
}

/// Replaces the output by one that is connected to the graph.
void BlockTape::recompute(TapePass& pass, int block, TapePass::Kept& kept) const {
  gpu::MemoryScope const scope(gpu::MemoryCategory::activations);
  at::AutoGradMode const graph(true);
  kept.output.reset();
  for (auto& buffer : kept.buffers) buffer = buffer.clone();
  kept.output = block_at(block).forward(
      kept.input, {kept.parameters, kept.buffers, kept.context, &pass.places(block)});
}

/// The result of forward, after the block's own output was kept.
at::Tensor BlockTape::join(TapePass const& pass, int block, at::Tensor const& x) const {
  auto const [index, count] = block_at(block).part();
  if (count == 1) return pass.of(block).output.detach();
  if (index < count - 1) return x;
  std::vector<at::Tensor> outputs;
  for (int i = block - index; i <= block; ++i) outputs.push_back(pass.of(i).output);
  return at::cat(outputs, 1);
}

/// The columns of the joined output (or of its gradient) that belong to this part.
at::Tensor BlockTape::own_slice(TapePass const& pass, int block, at::Tensor const& joined) const {
  auto const [index, count] = block_at(block).part();
  if (count == 1 || !joined.defined()) return joined;
  std::int64_t begin = 0;
  for (int i = block - index; i < block; ++i) begin += pass.of(i).output.size(1);
  return joined.narrow(1, begin, pass.of(block).output.size(1));
}

}  // namespace stratagem
