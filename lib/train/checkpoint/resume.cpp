#include "train/checkpoint/resume.hpp"

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
      bool const of_first = name.kind == StateName::buffers && name.worker == 0;
      if (name.kind != State::parameters && !of_first) continue;
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

}  // namespace

void check_resumable(Checkpoint const& checkpoint, Facts const& facts, Model const& model,
                     Likeness likeness, Log& log) {
  auto const changed =
      require_alike(checkpoint.record().facts, facts, likeness, checkpoint.folder().string());
  check_tensors(checkpoint, model);
  if (!changed.empty())
    log.warning("goes on, but its numbers are others than without the stop: " + changed);
}

void restore(Checkpoint const& checkpoint, int workers, Model const& model,
             Participant& participant) {
  auto const state = participant.state();
  bool const same_workers = checkpoint.record().workers == workers;
  std::map<std::string, std::map<int, at::Tensor>> of_workers;
  checkpoint.read([&](StateName const& name, at::Tensor const& tensor) {
    TensorMap const one{{name.tensor, tensor}};
    if (name.kind != StateName::buffers)
      load(state, name.kind, model, one);
    else if (same_workers)
      load_buffers(state, name.worker, model, one);
    else
      of_workers[name.tensor][name.worker] = tensor;
  });
  load_weights(state, model, average(of_workers));
  load_counters(state, checkpoint.record().counters);
  participant.state_replaced();
}

}  // namespace stratagem
