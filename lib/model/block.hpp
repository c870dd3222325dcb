#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "params/parameter_spec.hpp"

namespace stratagem {

/// What a forward pass depends on, apart from its input and parameters. Random masks are a pure
/// function of (seed, step, sample slot, layer), so they do not depend on which rank computes them.
struct Context {
  bool training = false;
  bool dropout = true;     ///< false: no dropout and no stochastic depth, even in training
  bool fused = true;       ///< see ModelConfig
  bool small_maps = true;  ///< false: convolved as large ones, even if fused
  bool as_on_gpu = false;  ///< a CPU leaves out what a GPU lacks, and holds what that would hold
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_slot = 0;  ///< index of the first sample in the global batch
  double loss_scale = 1;        ///< of what a block itself adds to the loss
  /// Of a pass that a graph repeats: its present step << 32, in the device's memory; step is 0.
  std::uint64_t const* later = nullptr;

  bool knows_small_maps() const { return fused && small_maps; }
};

struct GradientPlaces;

/// The tensors of one block for one pass, in the order in which the block declared them; borrowed
/// parameters follow its own.
struct Frame {
  std::span<at::Tensor const> parameters;
  std::span<at::Tensor const> buffers;
  Context const& context;
  GradientPlaces* places = nullptr;  ///< of a pass that a backward pass follows
};

/// The tensors that a block needs. Layers declare theirs on construction and remember the index.
class Declaration {
 public:
  int parameter(ParameterSpec spec);
  int buffer(BufferSpec spec);
  /// A parameter that an earlier block declares, used here too. Declared after all own parameters.
  int borrow(std::string name);
  /// A training pass normalises each sample by the others (BatchNorm).
  void mix_samples() { mixes_samples_ = true; }

  bool mixes_samples() const { return mixes_samples_; }
  std::vector<ParameterSpec> const& parameters() const { return parameters_; }
  std::vector<BufferSpec> const& buffers() const { return buffers_; }
  std::vector<std::string> const& borrowed() const { return borrowed_; }
  /// Names in declaration order, parameters and buffers together: the order of a state_dict.
  std::vector<std::string> const& names() const { return names_; }

 private:
  std::vector<ParameterSpec> parameters_;
  std::vector<BufferSpec> buffers_;
  std::vector<std::string> names_, borrowed_;
  bool mixes_samples_ = false;
};

/// A part of a model with one tensor in and one tensor out. Strategies run, communicate and shard
/// blocks as a whole. A block declares its parameters but does not hold them. It computes on the
/// device and in the floating type of its input.
class Block {
 public:
  virtual ~Block() = default;
  Block(Block const&) = delete;
  Block& operator=(Block const&) = delete;

  std::string const& name() const { return name_; }
  Declaration const& declaration() const { return declare_; }

  /// x [n, ...] -> [n, ...]. Running statistics in frame.buffers are updated in training; those
  /// that count passes are not.
  virtual at::Tensor forward(at::Tensor const& x, Frame const& frame) const = 0;

  /// Consecutive blocks may be parts of one layer: all get the same input, and their outputs are
  /// concatenated along dimension 1. A whole block is part 1 of 1.
  struct Part {
    int index = 0;
    int count = 1;
  };
  virtual Part part() const { return {}; }

 protected:
  explicit Block(std::string name) : name_(std::move(name)) {}

  Declaration declare_;  ///< layers of the derived class register here during construction

 private:
  std::string name_;
};

using Blocks = std::vector<std::unique_ptr<Block>>;

}  // namespace stratagem
