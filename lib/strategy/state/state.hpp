#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "model/model.hpp"
#include "params/parameter_layout.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/state/named_tensors.hpp"

namespace stratagem {

/// Elements of one parameter that a rank holds.
struct StatePiece {
  std::size_t entry = 0;          ///< of the layout
  FlatRange range;                ///< of the parameter's elements, in the order of its memory
  std::vector<at::Tensor> terms;  ///< 1-D, [range.size()] each; the state is their sum
};

/// State of one kind: an element for each of the parameters'. Every rank declares the same kinds,
/// each worker's own among them, and holds all, some or none of the elements; those that no rank
/// holds are 0.
struct ParameterState {
  static constexpr int all_workers = -1;

  std::string kind;
  at::ScalarType type = at::kFloat;
  std::vector<StatePiece> pieces;  ///< of this rank; other ranks hold the same ones, or the rest
  int worker = all_workers;        ///< whose own state it is, or that of all
};

/// What this rank holds of a training, between two rounds, as views: the next step begins with what
/// is written to them. Saved, loaded and hashed by the functions below for every strategy alike.
struct State {
  static constexpr char const* parameters = "parameters";  ///< the kind that all strategies have

  std::vector<ParameterState> of_parameters;  ///< `parameters` first, then the optimizer's
  std::map<int, Buffers> buffers;             ///< running statistics, by worker
  std::map<std::string, double*> counters;    ///< what else the next step depends on
  int counters_of = -1;   ///< the worker that alone has these counters; -1: all ranks have them
  NamedTensors replicas;  ///< what other ranks hold too, bit for bit
};

/// What lies in `memory`, 1-D, which holds the elements `held` of the flat space.
std::vector<StatePiece> pieces_of(ParameterLayout const& layout, FlatRange held,
                                  at::Tensor const& memory);

/// Copies of whole tensors of one kind by name, on the CPU, in model order: those that this rank
/// wants. Empty for a kind that is not declared. `worker`: whose own. Collective.
NamedTensors gather(State const& state, std::string const& kind, Model const& model,
                    Wanted const& wanted, Communicator& communicator,
                    int worker = ParameterState::all_workers);

/// Replaces, in what this rank holds of a kind, what `tensors` names: the state of all workers and
/// each worker's own, or only that of `worker` (which may be all_workers).
void load(State const& state, std::string const& kind, Model const& model,
          std::map<std::string, at::Tensor> const& tensors, std::optional<int> worker = {});

/// Replaces the running statistics that `tensors` names, of one worker if it is played here.
void load_buffers(State const& state, int worker, Model const& model,
                  std::map<std::string, at::Tensor> const& tensors);

/// Replaces the parameters, and the running statistics of all workers, that `tensors` names.
void load_weights(State const& state, Model const& model,
                  std::map<std::string, at::Tensor> const& tensors);

}  // namespace stratagem
