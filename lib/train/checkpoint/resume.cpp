#include "train/checkpoint/resume.hpp"

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/weights.hpp"

namespace stratagem {
namespace {

using Kind = StateName::Kind;

void check_tensors(Checkpoint const& checkpoint, Model const& model) {
  TensorMap tensors;
  for (auto const& file : checkpoint.record().files)
    for (auto const& [text, tensor] : file.tensors) {
      auto const name = StateName::parse(text);
      if (name.kind == Kind::momentum || (name.kind == Kind::buffers && name.worker != 0)) continue;
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

void restore(Checkpoint const& checkpoint, int workers, Strategy& strategy) {
  bool const same_workers = checkpoint.record().workers == workers;
  std::map<std::string, std::map<int, at::Tensor>> of_workers;
  checkpoint.read([&](StateName const& name, at::Tensor const& tensor) {
    TensorMap const one{{name.tensor, tensor}};
    if (name.kind == Kind::parameters) strategy.load(one);
    if (name.kind == Kind::momentum) strategy.load_momentum(one);
    if (name.kind == Kind::buffers && same_workers) strategy.load_buffers(name.worker, one);
    if (name.kind == Kind::buffers && !same_workers) of_workers[name.tensor][name.worker] = tensor;
  });
  strategy.load(average(of_workers));
  strategy.load_counters(checkpoint.record().counters);
}

}  // namespace stratagem
