#pragma once

#include <functional>
#include <optional>

#include "comm/communicator.hpp"
#include "data/batch.hpp"
#include "strategy/strategy.hpp"

namespace stratagem {

struct Evaluation {
  double loss = 0;      ///< mean over all labels: of test images, or of tokens of the test text
  double accuracy = 0;  ///< share of them that is predicted
  std::int64_t labels = 0;
};

/// Which rank evaluates what.
struct EvaluationShare {
  std::optional<RankSlice> slice;  ///< of the test samples; none for a rank that does not evaluate
  int ranks = 1;                   ///< that evaluate
  std::int64_t batch = 1;          ///< samples of one pass
};

/// All test samples, each on one rank, with running statistics averaged over the workers.
/// Collective; the same result on every rank. `gives_up`: asked before each pass; nothing is
/// returned when it is true on some rank.
std::optional<Evaluation> evaluate(Member const& member, Communicator& communicator,
                                   BatchMaker const& maker, SampleSet const& test,
                                   EvaluationShare const& share,
                                   std::function<bool()> const& gives_up);

}  // namespace stratagem
