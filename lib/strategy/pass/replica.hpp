#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "compress/codec.hpp"
#include "gpu/device.hpp"
#include "model/model.hpp"
#include "optim/optimizer.hpp"
#include "strategy/state/model_layout.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {

/// All parameters of one model copy in one flat buffer, and, where passes run with rounded ones, a
/// second one that holds those: the tensors that blocks run with are views of one or the other.
class Replica {
 public:
  /// Initialised from `seed`. Passes run with what is read of `code`, in the type of `precision`.
  /// AgreedError(environment) for a code on a GPU.
  Replica(Model const& model, Precision precision, gpu::Device const& device, std::uint64_t seed,
          Code code = Code::none);

  Model const& model() const { return model_; }
  ParameterLayout const& layout() const { return layout_; }
  at::Tensor const& flat() const { return flat_; }
  /// What a block runs with; leaves of the autograd graph.
  std::span<at::Tensor const> parameters(int block) const {
    return parameters_[static_cast<std::size_t>(block)];
  }

  /// After a change of flat(): renews what lies in `range` of the rounded copy.
  void refresh(FlatRange range);
  /// The part of the copy that an update of flat() may renew itself; undefined where there is none,
  /// or what passes run with is read of a code.
  at::Tensor rounded(FlatRange range) const;

  /// Copies of what lies in `flat` (layout().size() elements) as whole named tensors.
  NamedTensors named(at::Tensor const& flat, Wanted const& wanted) const;
  /// What lies in `flat` under its names with `prefix`: parts of tensors apart, and nothing copied.
  NamedTensors views(at::Tensor const& flat, std::string const& prefix) const;
  /// Replaces the parameters that `tensors` names.
  void load(std::map<std::string, at::Tensor> const& tensors);
  /// The state of whoever has all parameters and, of its optimizer, `kept`: as views.
  std::vector<ParameterState> state(OptimizerState const& kept) const;

 private:
  void refresh_in_code(FlatRange range);

  Model const& model_;
  ParameterLayout layout_;
  at::Tensor flat_;
  std::optional<Codec> codec_;
  at::Tensor rounded_;  ///< undefined where passes run with flat_
  std::vector<std::vector<at::Tensor>> parameters_;
};

}  // namespace stratagem
