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

BlockTape::BlockTape(Blocks const& blocks, Recompute recompute)
    : blocks_(blocks), recompute_(recompute), uses_(uses_of(blocks)), kept_(blocks.size()) {
  for (std::size_t i = 0; i < blocks.size(); ++i)
    places_.push_back(c10::make_intrusive<GradientPlaces>(branch_));
}

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
  auto of_block = frame;
  of_block.places = places_[static_cast<std::size_t>(block)].get();
  kept.output = blocks_[static_cast<std::size_t>(block)]->forward(kept.input, of_block);
  at::NoGradGuard const joining;
  if (frame.context.training) count_pass(block, frame);
  return join(block, x);
}

void BlockTape::count_pass(int block, Frame const& frame) {
  auto const& specs = blocks_[static_cast<std::size_t>(block)]->declaration().buffers();
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (specs[i].counts_passes) counters_.push_back(frame.buffers[i]);
  if (block + 1 < blocks() || counters_.empty()) return;
  at::_foreach_add_(counters_, 1);
  counters_.clear();
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
    open_places(block, kept.input, gradients, write);
    auto fresh = gradients_of(kept.output, wanted, own_gradient);
    branch_->join();
    if (kept.input.requires_grad()) {
      if (index == count - 1)
        input_gradient_ = std::move(fresh.back());
      else if (fresh.back().defined())
        input_gradient_.add_(fresh.back());
      fresh.pop_back();
    }
    land(block, gradients, fresh, write);
    places_[static_cast<std::size_t>(block)]->close();
  }
  return index > 0 ? grad_output : std::exchange(input_gradient_, {});
}

std::string const& BlockTape::name_of(int block, std::size_t parameter) const {
  auto const& declaration = blocks_[static_cast<std::size_t>(block)]->declaration();
  auto const own = declaration.parameters().size();
  return parameter < own ? declaration.parameters()[parameter].name
                         : declaration.borrowed()[parameter - own];
}

std::vector<std::vector<BlockTape::Use>> BlockTape::uses_of(Blocks const& blocks) {
  std::set<std::string> later;  // borrowed by the blocks after the present one
  std::vector<std::vector<Use>> uses(blocks.size());
  for (auto i = blocks.size(); i-- > 0;) {
    auto const& declaration = blocks[i]->declaration();
    for (auto const& spec : declaration.parameters())
      uses[i].push_back(later.contains(spec.name) ? Use::first : Use::alone);
    for (auto const& name : declaration.borrowed())
      uses[i].push_back(later.insert(name).second ? Use::last : Use::between);
  }
  return uses;
}

/// Of parameters, those that replace others and come from this block alone. The input's is added
/// to those of later parts in one kernel only on a GPU: a CPU keeps the bits of an addition apart.
void BlockTape::open_places(int block, at::Tensor const& input,
                            std::span<at::Tensor const> gradients, GradWrite write) {
  auto& places = *places_[static_cast<std::size_t>(block)];
  places.open(gradients.size());
  if (input_gradient_.defined() && input_gradient_.is_cuda()) {
    places.input = input;
    places.of_input = input_gradient_;
  }
  if (write == GradWrite::accumulate) return;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (uses_[static_cast<std::size_t>(block)][i] == Use::alone) places.places[i] = gradients[i];
}

/// Together, all gradients that replace others, and all that are added. An undefined gradient means
/// zero.
void BlockTape::land(int block, std::span<at::Tensor const> gradients, std::span<at::Tensor> fresh,
                     GradWrite write) {
  std::vector<at::Tensor> to, from, sums, terms;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    auto const use = uses_[static_cast<std::size_t>(block)][i];
    bool const landed = places_[static_cast<std::size_t>(block)]->landed[i];
    bool const begins = use == Use::alone || use == Use::last;
    if (write == GradWrite::accumulate && use != Use::alone) {
      auto& begun = begun_[name_of(block, i)];
      if (use == Use::last)
        begun = fresh[i].to(gradients[i].scalar_type());
      else
        begun.add_(fresh[i]);
      if (use != Use::first) continue;
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
void BlockTape::recompute(int block, Kept& kept) const {
  gpu::MemoryScope const scope(gpu::MemoryCategory::activations);
  at::AutoGradMode const graph(true);
  kept.output.reset();
  for (auto& buffer : kept.buffers) buffer = buffer.clone();
  kept.output = blocks_[static_cast<std::size_t>(block)]->forward(
      kept.input, {kept.parameters, kept.buffers, kept.context,
                   places_[static_cast<std::size_t>(block)].get()});
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
  if (count == 1 || !joined.defined()) return joined;
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
  counters_.clear();
  input_gradient_.reset();
  begun_.clear();
}

}  // namespace stratagem
