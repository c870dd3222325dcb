#pragma once

#include <optional>

#include "comm/communicator.hpp"
#include "data/batch.hpp"
#include "strategy/strategy.hpp"

namespace stratagem {

struct Evaluation {
  double loss = 0;      ///< mean over all test images
  double accuracy = 0;  ///< share of them that is classified right
  std::int64_t images = 0;
};

/// All test images, each on one rank, with running statistics averaged over the workers. `slice`:
/// of those that evaluate, none for a rank that does not. Collective; the same result on every
/// rank.
Evaluation evaluate(Strategy& strategy, Communicator& communicator, BatchMaker const& maker,
                    ImageSet const& test, std::optional<RankSlice> const& slice,
                    std::int64_t batch);

}  // namespace stratagem
