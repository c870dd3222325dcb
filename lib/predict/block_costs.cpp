#include "predict/block_costs.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "gpu/memory.hpp"
#include "model/block_tape.hpp"
#include "predict/flop_counter.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

constexpr gpu::Device host{};

/// Samples that every block takes: BatchNorm refuses one, and so may the program of a file.
std::int64_t few_samples(Model const& model, ModelConfig const& config) {
  bool const has_statistics = std::ranges::any_of(
      model.blocks, [](auto const& block) { return !block->declaration().buffers().empty(); });
  return has_statistics || !config.file.empty() ? 2 : 1;
}

/// What the forward pass of each block adds to live memory [B], and its FLOPs.
struct Passed {
  std::vector<std::int64_t> kept;
  std::vector<double> flops;
};

std::vector<at::Tensor> zero_parameters(Model const& model, int block) {
  auto const layout = layout_of_block(model, block);
  auto tensors = views_of(at::zeros({layout.size()}), layout, layout.blocks() - 1);
  for (auto& tensor : tensors) tensor = tensor.detach().requires_grad_();
  return tensors;
}

Passed pass(Model const& model, Context const& context, InputShape const& input,
            std::int64_t samples) {
  auto x = blank_input(input, samples);
  if (model.memory_format == MemoryFormat::channels_last)
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
  auto const buffers = make_buffers(model, host, Precision::fp32);
  BlockTape const tape(model.blocks);
  auto kept = tape.begin();
  FlopCounter counter;
  Passed passed;
  for (int block = 0; block < tape.blocks(); ++block) {
    auto const place = static_cast<std::size_t>(block);
    auto const parameters = zero_parameters(model, block);
    auto const before = gpu::live_memory(host).total();
    x = tape.forward(kept, block, x, {parameters, buffers[place], context});
    passed.kept.push_back(gpu::live_memory(host).total() - before);
    passed.flops.push_back(counter.take());
  }
  return passed;
}

}  // namespace

std::vector<BlockCost> block_costs(Model const& model, ModelConfig const& config,
                                   InputShape const& input) {
  Context const context{.training = true, .dropout = config.dropout, .fused = config.fused};
  auto const few = few_samples(model, config);
  auto const one = pass(model, context, input, few), two = pass(model, context, input, 2 * few);
  std::vector<BlockCost> costs;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    auto const& block = *model.blocks[i];
    BlockCost cost{.name = block.name()};
    for (auto const& spec : block.declaration().parameters()) {
      ++cost.tensors;
      cost.parameters += spec.numel();
    }
    cost.flops = (two.flops[i] - one.flops[i]) / few;
    cost.kept = (two.kept[i] - one.kept[i]) / few;
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace stratagem
