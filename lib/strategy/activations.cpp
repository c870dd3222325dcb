#include "strategy/activations.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "model/block_tape.hpp"
#include "strategy/buffers.hpp"
#include "strategy/cross_entropy.hpp"
#include "strategy/model_layout.hpp"

namespace stratagem {
namespace {

constexpr gpu::Device host{};
constexpr std::int64_t few = 4;  ///< one sample takes other kernels, and BatchNorm refuses it
constexpr std::int64_t small_size = 32, double_size = 64;  ///< of images [pixels]

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
  return threads == 1 && samples < 16 ? 1 : std::max(threads, 2);
}
/// As many as this machine has.
int available(int threads) {
  return std::min(threads, std::max(2, at::get_num_threads()));
}

/// Whether images of another size would need the same parameters.
bool takes_any_size(Model const& model, ModelConfig const& config, InputShape input) {
  input.size = small_size;
  return make_model(config, input).parameter_count() == model.parameter_count();
}

/// Bytes or seconds of a pass of many samples, perhaps of large images, from those of `few`
/// samples, of twice as many, and of `few` larger ones: all grow with the samples, and what a
/// sample adds grows with the pixels.
class Extrapolation {
 public:
  /// From images of `size` pixels and of twice that to those of `wanted_size`.
  Extrapolation(std::int64_t samples, std::int64_t size, std::int64_t wanted_size)
      : samples_(static_cast<double>(samples) / few),
        pixels_(static_cast<double>(wanted_size * wanted_size - size * size) /
                static_cast<double>(3 * size * size)) {}

  double from(double at_few, double at_twice, double at_larger) const {
    return at_few + (samples_ - 1) * (at_twice - at_few) +
           samples_ * pixels_ * (at_larger - at_few);
  }
  std::int64_t from(std::int64_t at_few, std::int64_t at_twice, std::int64_t at_larger) const {
    auto const real = [](std::int64_t bytes) { return static_cast<double>(bytes); };
    return std::llround(from(real(at_few), real(at_twice), real(at_larger)));
  }

 private:
  double samples_, pixels_;  ///< how many times the difference
};

}  // namespace

/// Runs passes of a few samples.
class ActivationPredictor::Probe {
 public:
  Probe(Model const& model, ModelConfig const& config, InputShape const& input,
        Precision precision);

  ActivationPass run(std::int64_t samples);

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

ActivationPredictor::Probe::Probe(Model const& model, ModelConfig const& config,
                                  InputShape const& input, Precision precision)
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

ActivationPass ActivationPredictor::Probe::run(std::int64_t samples) {
  auto const images = at::zeros({samples, input_.channels, input_.size, input_.size}, type_)
                          .contiguous(model_.memory_format == MemoryFormat::channels_last
                                          ? at::MemoryFormat::ChannelsLast
                                          : at::MemoryFormat::Contiguous);
  auto const labels = at::zeros({samples}, at::kLong);
  auto const before = gpu::live_memory(host).total();
  auto const begin = monotonic_ns();
  ActivationPass pass;
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
  pass.time_s = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return pass;
}

ParameterLayout ActivationPredictor::Probe::layout_of(int block) const {
  auto const& specs = model_.blocks[static_cast<std::size_t>(block)]->declaration().parameters();
  return {{specs}, model_.memory_format == MemoryFormat::channels_last};
}

std::vector<at::Tensor> ActivationPredictor::Probe::parameters(int block) const {
  auto const layout = layout_of(block);
  std::vector<at::Tensor> views;
  for (auto const& entry : layout.entries()) {
    auto const& home = entry.spec.keep_fp32 ? zeros_ : zeros_.view(type_);
    views.push_back(view_of(home, entry).detach().requires_grad_());
  }
  return views;
}

std::vector<at::Tensor> ActivationPredictor::Probe::gradients(int block) const {
  return views_of(landing_, layout_of(block), 0);
}

ActivationUse ActivationPredictor::predict(Model const& model, ModelConfig const& config,
                                           InputShape const& input, Precision precision,
                                           std::int64_t samples, int threads) {
  auto const wanted_threads = probe_threads(samples, threads);
  auto const type = precision == Precision::fp16 ? Precision::bf16 : precision;
  auto const pass = [&](std::int64_t size, std::int64_t of_samples) -> ActivationPass const& {
    auto const kind = [&](int on_threads) {
      return str(model.name, ' ', model.parameter_count(), ' ', config.recompute.every, ' ',
                 config.dropout, ' ', static_cast<int>(model.memory_format), ' ', input.channels,
                 ' ', static_cast<int>(type), ' ', on_threads, ' ', size, ' ', of_samples,
                 " LibTorch ", build_info().libtorch);
    };
    bool const known = passes_.contains(kind(wanted_threads));
    auto const on_threads = known ? wanted_threads : available(wanted_threads);
    auto found = passes_.find(kind(on_threads));
    if (found == passes_.end()) {
      Threads const as_in_the_run(on_threads);
      Probe probe(model, config, {input.channels, size}, type);
      found = passes_.emplace(kind(on_threads), probe.run(of_samples)).first;
    }
    return found->second;
  };
  bool const small_is_enough = input.size > double_size && takes_any_size(model, config, input);
  auto const size = small_is_enough ? small_size : input.size;
  auto const &one = pass(size, few), &two = pass(size, 2 * few);
  auto const& larger = small_is_enough ? pass(double_size, few) : one;
  Extrapolation const whole(samples, size, input.size);
  ActivationUse use{.kept = whole.from(one.kept, two.kept, larger.kept)};
  for (std::size_t i = 0; i < one.peaks.size(); ++i)
    use.peak = std::max(use.peak, whole.from(one.peaks[i], two.peaks[i], larger.peaks[i]));
  // The first pass of a process is slow, so half of the second stands for it.
  use.pass_s = whole.from(two.time_s / 2, two.time_s, std::max(larger.time_s, two.time_s / 2));
  return use;
}

}  // namespace stratagem
