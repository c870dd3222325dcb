#include "strategy/shared/step_status.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "gpu/device.hpp"

namespace stratagem {

StepStatus::StepStatus(at::Tensor memory)
    : memory_(std::move(memory)),
      told_(gpu::Device::of(memory_.device()), (end - first_told) * memory_.element_size()),
      sum_(gpu::Device::of(memory_.device()), memory_.nbytes()),
      arrived_(gpu::Device::of(memory_.device())) {
  expects(memory_.numel() == status_room, "room for the status");
}

void StepStatus::begin(StepOptions const& options, ReplicaHashes hashes) {
  requests_ = options.requests;
  hashes_ = std::move(hashes);
  first_bad_block_ = -1;
  refuses_ = false;
}

void StepStatus::clear() {
  memory_.zero_();
}

void StepStatus::note(CrossEntropy const& pass, TapePass const& kept) {
  memory_[loss].add_(pass.loss);
  memory_[correct].add_(pass.correct);
  memory_[not_finite].add_(pass.loss.sub(pass.loss).ne(0));  // NaN where it is not finite
  if (!pass.loss.is_cpu() || std::isfinite(pass.loss.item<double>())) return;
  refuses_ = true;
  if (first_bad_block_ < 0) first_bad_block_ = kept.first_non_finite();
}

void StepStatus::refuse() {
  memory_[not_finite].add_(1);
}

void StepStatus::tell(std::uint64_t fingerprint) {
  auto const values = at::empty({end - first_told}, at::kFloat);
  auto* of = values.data_ptr<float>() - first_told;
  of[stop] = requests_.stop ? 1 : 0;
  of[interrupt] = requests_.interrupt ? 1 : 0;
  of[save] = requests_.save ? 1 : 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    of[first_part + i] = static_cast<float>(fingerprint >> (4 * i) & 15);
    of[first_square + i] = of[first_part + i] * of[first_part + i];
  }
  at::from_blob(told_.data(), {end - first_told}, memory_.scalar_type()).copy_(values);
}

void StepStatus::seal(std::uint64_t fingerprint) {
  tell(fingerprint);
  gpu::copy_async(memory_[first_told].data_ptr(), told_.data(), told_.size(),
                  gpu::Stream::compute(gpu::Device::of(memory_.device())));
}

void StepStatus::fetch_sum() {
  auto const stream = gpu::Stream::compute(gpu::Device::of(memory_.device()));
  gpu::copy_async(sum_.data(), memory_.data_ptr(), sum_.size(), stream);
  arrived_.record(stream);
}

at::Tensor StepStatus::refusal() const {
  return memory_[not_finite].ne(0).to(at::kFloat);
}

StepStatus::Agreed StepStatus::result(Batch const& batch, StatusTerms const& terms) const {
  arrived_.wait_on_host();
  auto const sums =
      at::from_blob(sum_.data(), {status_room}, memory_.scalar_type()).to(at::kDouble);
  auto const* of = sums.data_ptr<double>();
  // N times the sum of squares is the square of the sum where all terms are equal, else more.
  bool alike = true;
  for (std::int64_t i = 0; i < parts; ++i)
    alike = alike && terms.ranks * of[first_square + i] == of[first_part + i] * of[first_part + i];
  return {.result = {.loss = of[loss] / (terms.reporters * terms.passes),
                     .correct = static_cast<std::int64_t>(of[correct]),
                     .labels = batch.labels.numel() * terms.reporters,
                     .requests = {.stop = of[stop] > 0,
                                  .interrupt = of[interrupt] > 0,
                                  .save = of[save] > 0}},
          .finite = of[not_finite] == 0,
          .alike = alike};
}

Error bad_gradient(std::int64_t step, std::string const& whose, NamedTensors const& gradients) {
  constexpr std::size_t most = 3;  // that are named
  std::vector<std::string> names;
  for (auto const& [name, gradient] : gradients)
    if (!gradient.isfinite().all().item<bool>()) names.push_back(name);
  auto const more = names.size() - std::min(names.size(), most);
  names.resize(names.size() - more);
  return {ExitCode::non_finite, str("the gradient is not finite at step ", step, ", ", whose),
          str("though the losses are", names.empty() ? "" : ": that of ", join(names, ", "),
              more > 0 ? str(" and ", more, " more tensors") : ""),
          "lower optimizer.lr or look at the data"};
}

Error bad_loss(std::string const& what, Model const& model, int first_bad_block) {
  return {ExitCode::non_finite, what,
          first_bad_block < 0 ? "though every block's output is"
                              : "first in the output of block " +
                                    model.blocks[static_cast<std::size_t>(first_bad_block)]->name(),
          "lower optimizer.lr or look at the data"};
}

void refuse_loss(Model const& model, Communicator& communicator, std::int64_t step,
                 int first_bad_block) {
  std::optional<Error> own;
  if (first_bad_block >= 0)
    own = bad_loss(str("the loss is not finite at step ", step, " on rank ", communicator.rank()),
                   model, first_bad_block);
  agree(communicator, own);
  throw AgreedError(ExitCode::non_finite, str("the loss is not finite at step ", step),
                    "though every block's output is", "look at the labels");
}

}  // namespace stratagem
