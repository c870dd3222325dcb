#include "strategy/activations.hpp"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/clock.hpp"
#include "gpu/memory.hpp"
#include "model/block_tape.hpp"
#include "strategy/buffers.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/model_layout.hpp"

namespace stratagem {
namespace {

constexpr gpu::Device host{};
constexpr std::int64_t few = 4;  ///< one sample takes other kernels, and BatchNorm refuses it

/// Of LibTorch, while it lives.
class Threads {
 public:
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(Threads const&) = delete;
  Threads& operator=(Threads const&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// With which few samples take the kernels that `samples` take on `threads`. LibTorch 2.11
/// convolves fewer than 16 samples on one thread otherwise than all else.
int probe_threads(std::int64_t samples, int threads) {
  if (threads == 1 && samples < 16) return 1;
  return std::clamp(threads, 2, std::max(2, at::get_num_threads()));
}

/// Bytes at the moments of a pass.
struct Pass {
  std::int64_t kept = 0;
  std::vector<std::int64_t> peaks;  ///< of each block forward, of the loss, of each block backward
};

class Probe {
 public:
  Probe(Model const& model, ModelConfig const& config, InputShape const& input,
        Precision precision);

  Pass run(std::int64_t samples);

 private:
  ParameterLayout layout_of(int block) const;
  std::vector<at::Tensor> parameters(int block) const;
  std::vector<at::Tensor> gradients(int block) const;

  Model const& model_;
  InputShape input_;
  at::ScalarType type_;
  Context context_;
  Buffers buffers_;
  BlockTape tape_;
  at::Tensor zeros_;    ///< the parameters of whichever block
  at::Tensor landing_;  ///< and their gradients
};

Probe::Probe(Model const& model, ModelConfig const& config, InputShape const& input,
             Precision precision)
    : model_(model),
      input_(input),
      type_(compute_type(precision)),
      context_{.training = true, .dropout = config.dropout},
      buffers_(make_buffers(model, host, precision)),
      tape_(model.blocks, config.recompute) {
  std::int64_t largest = 0;
  for (int block = 0; block < tape_.blocks(); ++block)
    largest = std::max(largest, layout_of(block).size());
  zeros_ = at::zeros({largest}, master_type(precision));
  landing_ = at::empty_like(zeros_);
}

Pass Probe::run(std::int64_t samples) {
  auto const images = at::zeros({samples, input_.channels, input_.size, input_.size}, type_)
                          .contiguous(model_.memory_format == MemoryFormat::channels_last
                                          ? at::MemoryFormat::ChannelsLast
                                          : at::MemoryFormat::Contiguous);
  auto const labels = at::zeros({samples}, at::kLong);
  auto const before = gpu::live_memory(host).total();
  Pass pass;
  auto const note = [&] {
    pass.peaks.push_back(gpu::peak_memory(host).total() - before);
    gpu::reset_peak_memory(host);
  };

  gpu::reset_peak_memory(host);
  at::Tensor x = images;
  for (int block = 0; block < tape_.blocks(); ++block) {
    x = tape_.forward(block, x,
                      {parameters(block), buffers_[static_cast<std::size_t>(block)], context_});
    note();
  }
  pass.kept = gpu::live_memory(host).total() - before;
  auto const loss = cross_entropy(x, labels);
  note();
  auto gradient = loss.gradient;
  for (int block = tape_.blocks() - 1; block >= 0; --block) {
    gradient = tape_.backward(block, gradient, gradients(block), Landing::store);
    note();
  }
  return pass;
}

ParameterLayout Probe::layout_of(int block) const {
  auto const& specs = model_.blocks[static_cast<std::size_t>(block)]->declaration().parameters();
  return {{specs}, model_.memory_format == MemoryFormat::channels_last};
}

std::vector<at::Tensor> Probe::parameters(int block) const {
  auto const layout = layout_of(block);
  std::vector<at::Tensor> views;
  for (auto const& entry : layout.entries()) {
    auto const& home = entry.spec.keep_fp32 ? zeros_ : zeros_.view(type_);
    views.push_back(view_of(home, entry).detach().requires_grad_());
  }
  return views;
}

std::vector<at::Tensor> Probe::gradients(int block) const {
  return views_of(landing_, layout_of(block), 0);
}

}  // namespace

ActivationUse predict_activations(Model const& model, ModelConfig const& config,
                                  InputShape const& input, Precision precision,
                                  std::int64_t samples, int threads) {
  Threads const as_in_the_run(probe_threads(samples, threads));
  Probe probe(model, config, input, precision == Precision::fp16 ? Precision::bf16 : precision);
  auto const one = probe.run(few);
  auto const begin = monotonic_ns();
  auto const two = probe.run(2 * few);
  auto const time_s = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  auto const predict = [&](std::int64_t at_few, std::int64_t at_twice) {
    return at_few + (at_twice - at_few) * (samples - few) / few;
  };
  ActivationUse use{.kept = predict(one.kept, two.kept),
                    .pass_s = time_s * static_cast<double>(samples) / (2 * few)};
  for (std::size_t i = 0; i < one.peaks.size(); ++i)
    use.peak = std::max(use.peak, predict(one.peaks[i], two.peaks[i]));
  return use;
}

}  // namespace stratagem
