#include "strategy/control.hpp"

#include <cmath>
#include <optional>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"

namespace stratagem {

ControlRecord::ControlRecord(at::Tensor memory) : memory_(std::move(memory)) {
  expects(memory_.numel() == control_room, "room for the control record");
}

void ControlRecord::begin(StepOptions const& options) {
  memory_.zero_();
  auto const ask = [this](Field field, bool wanted) {
    if (wanted) memory_[field].fill_(1);
  };
  ask(stop, options.requests.stop);
  ask(interrupt, options.requests.interrupt);
  ask(save, options.requests.save);
  first_bad_block_ = -1;
}

void ControlRecord::note(CrossEntropy const& pass, BlockTape const& tape) {
  memory_[loss].add_(pass.loss);
  memory_[correct].add_(pass.correct);
  memory_[not_finite].add_(pass.loss.isfinite().logical_not());
  if (pass.loss.is_cpu() && first_bad_block_ < 0 && !std::isfinite(pass.loss.item<double>()))
    first_bad_block_ = tape.first_non_finite();
}

ControlRecord::Agreed ControlRecord::result(Batch const& batch, int ranks,
                                            int micro_batches) const {
  auto const sums = memory_.to(at::kCPU, at::kDouble);
  auto const* of = sums.data_ptr<double>();
  return {.result = {.loss = of[loss] / (ranks * micro_batches),
                     .correct = static_cast<std::int64_t>(of[correct]),
                     .samples = batch.labels.numel() * ranks,
                     .requests = {.stop = of[stop] > 0,
                                  .interrupt = of[interrupt] > 0,
                                  .save = of[save] > 0}},
          .finite = of[not_finite] == 0};
}

void refuse_loss(Model const& model, Communicator& communicator, std::int64_t step,
                 int first_bad_block) {
  std::optional<Error> own;
  if (first_bad_block >= 0)
    own = Error(ExitCode::non_finite,
                str("the loss is not finite at step ", step, " on rank ", communicator.rank()),
                "first in the output of block " +
                    model.blocks[static_cast<std::size_t>(first_bad_block)]->name(),
                "lower optimizer.lr or look at the data");
  agree(communicator, own);
  throw AgreedError(ExitCode::non_finite, str("the loss is not finite at step ", step),
                    "though every block's output is", "look at the labels");
}

}  // namespace stratagem
