#include "train/checkpoint/resume.hpp"

#include <map>
#include <set>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/weights.hpp"
#include "strategy/state/counters.hpp"

namespace stratagem {
namespace {

void check_tensors(Checkpoint const& checkpoint, Model const& model) {
  TensorMap tensors;
  for (auto const& file : checkpoint.record().files)
    for (auto const& [text, tensor] : file.tensors) {
      auto const name = StateName::parse(text);
      bool const of_all = name.kind == State::parameters && !name.is_own();
      bool const of_first = name.kind == StateName::buffers && name.worker == 0;
      if (!of_all && !of_first) continue;
      bool const counter = tensor.type == at::toString(at::kLong);
      tensors.emplace(name.tensor, at::zeros({}, counter ? at::kLong : at::kFloat)
                                       .expand(tensor.shape));  // one element, of any shape
    }
  try {
    static_cast<void>(
        match_weights(model, std::move(tensors), HeadWeights::strict, checkpoint.folder()));
  } catch (Error const& mismatch) {
    throw Error(ExitCode::checkpoint, mismatch.what());
  }
}

/// The kinds of which each worker has its own.
std::set<std::string> own_kinds(CheckpointRecord const& record) {
  std::set<std::string> kinds;
  for (auto const& file : record.files)
    for (auto const& [text, _] : file.tensors)
      if (auto const name = StateName::parse(text); name.is_own()) kinds.insert(name.kind);
  return kinds;
}

/// Those that a training has, as one of this strategy saves them.
std::set<std::string> own_kinds(State const& state) {
  std::set<std::string> kinds{StateName::buffers};
  for (auto const& of : state.of_parameters)
    if (of.worker != ParameterState::all_workers) kinds.insert(of.kind);
  return kinds;
}

}  // namespace

void check_resumable(Checkpoint const& checkpoint, Facts const& facts, Model const& model,
                     ResumeMode resume_mode, Log& log) {
  auto const changed =
      require_alike(checkpoint.record().facts, facts, resume_mode, checkpoint.folder().string());
  check_tensors(checkpoint, model);
  if (!changed.empty())
    log.warning("continues, but the numbers will differ from an uninterrupted run: " + changed);
}

void restore(Checkpoint const& checkpoint, int workers, Model const& model,
             Participant& participant) {
  auto const state = participant.state();
  bool const same_workers = checkpoint.record().workers == workers;
  auto const saved = own_kinds(checkpoint.record()), held = own_kinds(state);
  // What each worker had of its own, where workers are others or have it in common: by kind, name.
  std::map<std::string, std::map<std::string, std::map<int, at::Tensor>>> to_average;
  checkpoint.read([&](StateName const& name, at::Tensor const& tensor) {
    TensorMap const one{{name.tensor, tensor}};
    if (!name.is_own() && saved.contains(name.kind))
      load(state, name.kind, model, one, ParameterState::all_workers);
    else if (!name.is_own())
      load(state, name.kind, model, one);
    else if (!same_workers || !held.contains(name.kind))
      to_average[name.kind][name.tensor][name.worker] = tensor;
    else if (name.kind == StateName::buffers)
      load_buffers(state, name.worker, model, one);
    else
      load(state, name.kind, model, one, name.worker);
  });
  for (auto const& [kind, of_workers] : to_average) {
    if (kind == StateName::buffers)
      load_weights(state, model, average(of_workers));
    else
      load(state, kind, model, average(of_workers));
  }
  load_counters(state, checkpoint.record().counters);
  participant.state_replaced();
}

}  // namespace stratagem
