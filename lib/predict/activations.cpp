#include "predict/activations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "gpu/memory.hpp"
#include "model/block_tape.hpp"
#include "model/convolution.hpp"
#include "strategy/pass/cross_entropy.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

constexpr gpu::Device host{};
constexpr std::int64_t fewest = 4;  ///< one sample takes other kernels, and BatchNorm refuses it
/// Bytes that a pass may hold which is run to learn what it holds: it takes a few seconds. Lines
/// through smaller passes follow kernels that larger ones do not take, on processors without
/// AVX-512 above all.
constexpr std::int64_t affordable = 256 << 20;
constexpr int timed_passes = 5;
constexpr std::int64_t small_size = 32, double_size = 64;  ///< of images [pixels]
constexpr std::int64_t last_small_size = 4 * 32;  ///< whose last maps, of 4x4 pixels, are small

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

Precision probed_type(Precision precision) {
  return precision == Precision::fp16 ? Precision::bf16 : precision;
}

InputShape of_size(InputShape input, std::int64_t size) {
  input.size = size;
  return input;
}

/// Whether images of another size would need the same parameters.
bool takes_any_size(Model const& model, ModelConfig const& config, InputShape input) {
  if (!config.file.empty() || input.is_text()) return false;
  input.size = small_size;
  return make_model(config, input).parameter_count() == model.parameter_count();
}

/// Bytes of a pass of many samples, perhaps of large images, from those of `few` samples, of twice
/// as many, and of `few` larger ones: all grow with the samples, and what a sample adds grows with
/// the pixels.
class Extrapolation {
 public:
  /// From images of `size` pixels and of twice that to those of `wanted_size`.
  Extrapolation(std::int64_t few, std::int64_t samples, std::int64_t size, std::int64_t wanted_size)
      : samples_(static_cast<double>(samples) / static_cast<double>(few)),
        pixels_(static_cast<double>(wanted_size * wanted_size - size * size) /
                static_cast<double>(3 * size * size)) {}

  std::int64_t from(std::int64_t at_few, std::int64_t at_twice, std::int64_t at_larger) const {
    auto const real = [](std::int64_t bytes) { return static_cast<double>(bytes); };
    return std::llround(real(at_few) + (samples_ - 1) * real(at_twice - at_few) +
                        samples_ * pixels_ * real(at_larger - at_few));
  }

 private:
  double samples_, pixels_;  ///< how many times the difference
};

ActivationUse use_of(ActivationPass const& pass) {
  return {.kept = pass.kept, .peak = std::ranges::max(pass.peaks)};
}

}  // namespace

/// Runs passes of a few samples.
class ActivationPredictor::Probe {
 public:
  Probe(Model const& model, ModelConfig const& config, InputShape const& input, Precision precision,
        bool small_maps, bool as_on_gpu);

  ActivationPass run(std::int64_t samples);

 private:
  std::vector<at::Tensor> parameters(int block) const;
  std::vector<at::Tensor> gradients(int block) const;

  Model const& model_;
  InputShape input_;
  at::ScalarType type_;
  Context context_;
  Buffers buffers_;
  BlockTape tape_;
  TapePass pass_;
  at::Tensor zeros_;    ///< the parameters of whichever block
  at::Tensor landing_;  ///< and their gradients
};

ActivationPredictor::Probe::Probe(Model const& model, ModelConfig const& config,
                                  InputShape const& input, Precision precision, bool small_maps,
                                  bool as_on_gpu)
    : model_(model),
      input_(input),
      type_(compute_type(precision)),
      context_{.training = true,
               .dropout = config.dropout,
               .fused = config.fused,
               .small_maps = small_maps,
               .as_on_gpu = as_on_gpu},
      buffers_(make_buffers(model, host, precision)),
      tape_(model.blocks, config.recompute),
      pass_(tape_.begin()) {
  std::int64_t largest = 0;
  for (int block = 0; block < tape_.blocks(); ++block)
    largest = std::max(largest, layout_of_block(model, block).size());
  zeros_ = at::zeros({largest}, master_type(precision));
  landing_ = at::empty_like(zeros_);
}

ActivationPass ActivationPredictor::Probe::run(std::int64_t samples) {
  auto inputs = blank_input(input_, samples, type_);
  if (model_.memory_format == MemoryFormat::channels_last)
    inputs = inputs.contiguous(at::MemoryFormat::ChannelsLast);
  auto const labels = blank_labels(input_, samples);
  auto const before = gpu::live_memory(host).total();
  ActivationPass pass;
  auto const note = [&] {
    pass.peaks.push_back(gpu::peak_memory(host).total() - before);
    gpu::reset_peak_memory(host);
  };

  gpu::reset_peak_memory(host);
  at::Tensor x = inputs;
  for (int block = 0; block < tape_.blocks(); ++block) {
    x = tape_.forward(pass_, block, x,
                      {parameters(block), buffers_[static_cast<std::size_t>(block)], context_});
    note();
  }
  pass.kept = gpu::live_memory(host).total() - before;
  auto const loss = cross_entropy(x, labels);
  note();
  auto gradient = loss.gradient;
  for (int block = tape_.blocks() - 1; block >= 0; --block) {
    gradient = tape_.backward(pass_, block, gradient, gradients(block), GradWrite::overwrite);
    note();
  }
  return pass;
}

std::vector<at::Tensor> ActivationPredictor::Probe::parameters(int block) const {
  auto const layout = layout_of_block(model_, block);
  std::vector<at::Tensor> views;
  for (auto const* entry : layout.used_by(layout.blocks() - 1)) {
    auto const& home = entry->spec.keep_fp32 ? zeros_ : zeros_.view(type_);
    views.push_back(view_of(home, *entry).detach().requires_grad_());
  }
  return views;
}

std::vector<at::Tensor> ActivationPredictor::Probe::gradients(int block) const {
  auto const layout = layout_of_block(model_, block);
  return views_of(landing_, layout, layout.blocks() - 1);
}

/// Passes of one kind, which differ in the size and the number of their images.
class ActivationPredictor::Family {
 public:
  Family(ActivationPredictor& all, Model const& model, ModelConfig const& config,
         InputShape const& input, Precision precision, std::int64_t samples, int threads,
         bool as_on_gpu)
      : all_(all),
        model_(model),
        config_(config),
        input_(input),
        type_(probed_type(precision)),
        threads_(probe_threads(samples, threads)),
        run_threads_(threads > 0 ? threads : threads_),
        by_small_images_(input.size > double_size && takes_any_size(model, config, input)),
        as_on_gpu_(as_on_gpu),
        in_place_(config.fused && by_small_images_ && input.size > last_small_size),
        size_(by_small_images_ ? small_size : input.size) {}

  /// Whether small passes were run on the machine that is planned for, which is not this one.
  bool is_given() const {
    return all_.machine_ == Machine::another && all_.given_.contains(key(threads_, size_, fewest));
  }
  bool knows(std::int64_t samples) const { return contains(run_threads_, input_.size, samples); }
  bool knows_line(std::int64_t few) const {
    return contains(threads_, size_, few) && contains(threads_, size_, 2 * few) &&
           (!by_small_images_ || contains(threads_, double_size, few));
  }

  ActivationUse run(std::int64_t samples) const {
    return use_of(pass(run_threads_, input_.size, samples));
  }

  /// By lines through passes of `few` samples and of twice as many.
  ActivationUse by_line(std::int64_t few, std::int64_t samples, std::int64_t size) const {
    auto const &one = pass(threads_, size_, few), &two = pass(threads_, size_, 2 * few);
    auto const& larger = by_small_images_ ? pass(threads_, double_size, few) : one;
    Extrapolation const whole(few, samples, size_, size);
    ActivationUse use{.kept = whole.from(one.kept, two.kept, larger.kept)};
    for (std::size_t i = 0; i < one.peaks.size(); ++i)
      use.peak = std::max(use.peak, whole.from(one.peaks[i], two.peaks[i], larger.peaks[i]));
    return use;
  }
  ActivationUse by_line(std::int64_t few, std::int64_t samples) const {
    return by_line(few, samples, input_.size);
  }

  /// Whether the passes for a line from `few` samples can be run here.
  bool affords_line(std::int64_t few) const {
    auto const peak = [&](std::int64_t samples, std::int64_t size) {
      return by_line(fewest, samples, size).peak;
    };
    return peak(2 * few, size_) <= affordable &&
           (!by_small_images_ || peak(few, double_size) <= affordable);
  }

 private:
  std::string key(int threads, std::int64_t size, std::int64_t samples) const {
    return str(model_.name, model_.graph.empty() ? "" : " " + model_.graph, ' ',
               model_.parameter_count(), ' ', config_.recompute.every, ' ', config_.dropout, ' ',
               config_.fused ? "fused " : "not fused ", static_cast<int>(model_.memory_format), ' ',
               input_.channels, ' ', input_.is_text() ? str("text ", input_.tokens, ' ') : "",
               static_cast<int>(type_), ' ', threads, ' ', size, ' ', samples, " LibTorch ",
               build_info().libtorch, in_place_ ? " of large maps" : "",
               as_on_gpu_ ? " as on a GPU" : "");
  }
  bool contains(int threads, std::int64_t size, std::int64_t samples) const {
    return all_.passes_.contains(key(threads, size, samples));
  }

  ActivationPass const& pass(int wanted, std::int64_t size, std::int64_t samples) const {
    auto const threads = contains(wanted, size, samples) ? wanted : available(wanted);
    auto found = all_.passes_.find(key(threads, size, samples));
    if (found == all_.passes_.end()) {
      Threads const as_in_the_run(threads);
      Probe probe(model_, config_, of_size(input_, size), type_, !in_place_, as_on_gpu_);
      found = all_.passes_.emplace(key(threads, size, samples), probe.run(samples)).first;
    }
    return found->second;
  }

  ActivationPredictor& all_;
  Model const& model_;
  ModelConfig const& config_;
  InputShape const& input_;
  Precision type_;
  int threads_;      ///< of small passes
  int run_threads_;  ///< of the pass that is wanted
  bool by_small_images_;
  bool as_on_gpu_;
  /// Of images whose maps are computed as large ones, also in the last layers, which see them 32
  /// times smaller.
  bool in_place_;
  std::int64_t size_;  ///< of the images of small passes
};

gpu::DeviceKind ActivationPredictor::usual_device() {
  return gpu::availability().runtime_version > 0 ? gpu::DeviceKind::cuda : gpu::DeviceKind::cpu;
}

ActivationUse ActivationPredictor::predict(Model const& model, ModelConfig const& config,
                                           InputShape const& input, Precision precision,
                                           std::int64_t samples, int threads, DeviceChoice device) {
  bool const as_on_gpu = device == DeviceChoice::automatic ? automatic_ == gpu::DeviceKind::cuda
                                                           : device == DeviceChoice::cuda;
  Family const family(*this, model, config, input, precision, samples, threads, as_on_gpu);
  auto few = fewest;
  if (family.is_given()) {
    if (family.knows(samples)) return family.run(samples);
    while (family.knows_line(2 * few)) few *= 2;
    return family.by_line(few, samples);
  }
  auto const use = family.by_line(fewest, samples);
  if (use.peak <= affordable) return family.run(samples);
  while (family.affords_line(2 * few)) few *= 2;
  return few == fewest ? use : family.by_line(few, samples);
}

double ActivationPredictor::time_pass(Model const& model, ModelConfig const& config,
                                      InputShape const& input, Precision precision,
                                      std::int64_t samples, int threads) {
  Threads const as_in_the_run(threads > 0 ? available(threads) : at::get_num_threads());
  auto const size =
      takes_any_size(model, config, input) ? std::min(input.size, double_size) : input.size;
  Probe probe(model, config, of_size(input, size), probed_type(precision),
              /*small_maps=*/true, /*as_on_gpu=*/false);
  probe.run(2 * fewest);  // the libraries choose and compile kernels
  auto best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < timed_passes; ++i) {
    auto const begin = monotonic_ns();
    probe.run(2 * fewest);
    best = std::min(best, monotonic_ns() - begin);
  }
  auto const pixels =
      static_cast<double>(input.size * input.size) / static_cast<double>(size * size);
  return 1e-9 * static_cast<double>(best) * pixels * static_cast<double>(samples) / (2 * fewest);
}

}  // namespace stratagem
