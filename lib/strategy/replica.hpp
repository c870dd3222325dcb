#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/hash.hpp"
#include "gpu/device.hpp"
#include "model/block_tape.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/strategy.hpp"

namespace stratagem {

/// The floating type that activations have.
at::ScalarType compute_type(Precision precision);
/// The type of the parameters that the optimizer updates: fp32, or fp64 when computing in fp64.
at::ScalarType master_type(Precision precision);

/// Declared parameters of a model, by block.
std::vector<std::vector<ParameterSpec>> parameter_specs(Model const& model);
ParameterLayout make_layout(Model const& model);

/// The running statistics of one worker, by block.
using Buffers = std::vector<std::vector<at::Tensor>>;
Buffers make_buffers(Model const& model, gpu::Device const& device, Precision precision);

/// buffers <- (((b_0 + b_1) + b_2) + ...) / N elementwise; counters take the first worker's value.
Buffers average(std::vector<Buffers> const& workers);

/// All parameters of one model copy in one flat buffer, and, when computing in 16 bit, a second one
/// that holds them rounded: the tensors that blocks run with are views of one or the other.
class Replica {
 public:
  /// Initialised from `seed`.
  Replica(Model const& model, Precision precision, gpu::Device const& device, std::uint64_t seed);

  Model const& model() const { return model_; }
  ParameterLayout const& layout() const { return layout_; }
  at::Tensor const& flat() const { return flat_; }
  /// What a block runs with; leaves of the autograd graph.
  std::span<at::Tensor const> parameters(int block) const {
    return parameters_[static_cast<std::size_t>(block)];
  }

  /// After an update of flat(): renews what lies in `range` of the rounded copy.
  void refresh(FlatRange range);

  /// Views of `flat` (layout().size() elements) as whole named tensors on the CPU, parts joined.
  NamedTensors named(at::Tensor const& flat) const;
  void load(std::map<std::string, at::Tensor> const& tensors, Buffers& buffers);

 private:
  Model const& model_;
  ParameterLayout layout_;
  at::Tensor flat_;
  at::Tensor rounded_;  ///< undefined when computing in the type of flat_
  std::vector<std::vector<at::Tensor>> parameters_;
};

/// Logits in evaluation mode, with `buffers` as running statistics.
at::Tensor infer(Replica const& replica, Buffers const& buffers, BlockTape& tape,
                 at::Tensor const& images);

/// Names and bytes of contiguous CPU tensors, for fingerprints.
void add(Hash& hash, NamedTensors const& tensors);

/// Buffers by name, on the CPU.
NamedTensors named(Model const& model, Buffers const& buffers);

}  // namespace stratagem
