#include "train/evaluation.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "data/sampler.hpp"

namespace stratagem {

Evaluation evaluate(Strategy& strategy, Communicator& communicator, BatchMaker const& maker,
                    ImageSet const& test, std::int64_t batch) {
  at::NoGradGuard const no_grad;
  strategy.prepare_evaluation();
  auto const own = RankSlice{communicator.rank(), communicator.size()}.of_evaluation(test.size());
  at::Tensor sums;  // loss, correct, images
  for (auto begin = own.begin; begin < own.end; begin += batch) {
    auto const part = maker.evaluation_batch(test, {begin, std::min(begin + batch, own.end)});
    auto const logits = strategy.predict(part.images).to(at::kDouble);
    auto const loss = at::cross_entropy_loss(logits, part.labels, {}, at::Reduction::Sum);
    auto const correct = logits.argmax(1).eq(part.labels).sum().to(at::kDouble);
    auto const more =
        at::stack({loss, correct, at::full_like(loss, static_cast<double>(part.size()))});
    sums = sums.defined() ? sums + more : more;
  }
  if (!sums.defined()) sums = communicator.allocate(3, at::kDouble);
  communicator.all_reduce(sums).wait_on_stream();
  auto const totals = sums.cpu();
  auto const* of = totals.data_ptr<double>();
  return {
      .loss = of[0] / of[2], .accuracy = of[1] / of[2], .images = static_cast<std::int64_t>(of[2])};
}

}  // namespace stratagem
