#include "train/evaluation.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "data/sampler.hpp"
#include "strategy/pass/cross_entropy.hpp"

namespace stratagem {

namespace {

bool on_any_rank(Communicator& communicator, bool own) {
  auto const some = communicator.allocate(1, at::kDouble);
  some.fill_(own ? 1.0 : 0.0);
  communicator.all_reduce(some).wait_on_stream();
  return some.item<double>() > 0;
}

}  // namespace

std::optional<Evaluation> evaluate(Member const& member, Communicator& communicator,
                                   BatchMaker const& maker, SampleSet const& test,
                                   EvaluationShare const& share,
                                   std::function<bool()> const& gives_up) {
  at::NoGradGuard const no_grad;
  auto const statistics = average(member.participant().state().buffers, communicator);
  auto const own = share.slice ? share.slice->of_evaluation(test.size()) : IndexRange{};
  // Passes are collective: all that evaluate make as many as the one with the most images.
  auto const passes = ceil_div(ceil_div(test.size(), share.ranks), share.batch);
  at::Tensor sums;  // loss, correct, labels
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    if (on_any_rank(communicator, gives_up())) return std::nullopt;
    if (!share.slice) continue;
    auto const begin = own.begin + own.size() * pass / passes;
    auto const end = own.begin + own.size() * (pass + 1) / passes;
    if (begin == end) {  // more ranks than images
      member.strategy->predict(maker.evaluation_batch(test, {0, 1}).inputs, statistics);
      continue;
    }
    auto const part = maker.evaluation_batch(test, {begin, end});
    auto const [loss, correct] =
        loss_sums(member.strategy->predict(part.inputs, statistics), part.labels);
    auto const labels = static_cast<double>(part.labels.numel());
    auto const more = at::stack({loss, correct, at::full_like(loss, labels)});
    sums = sums.defined() ? sums + more : more;
  }
  if (!sums.defined()) sums = communicator.allocate(3, at::kDouble);
  communicator.all_reduce(sums).wait_on_stream();
  auto const totals = sums.cpu();
  auto const* of = totals.data_ptr<double>();
  return Evaluation{
      .loss = of[0] / of[2], .accuracy = of[1] / of[2], .labels = static_cast<std::int64_t>(of[2])};
}

}  // namespace stratagem
