#pragma once

#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem {

/// The share of communication time that computation did not wait for: 1 - waited / union of the
/// communication's spans during steps, over the sampled steps of these ranks. NaN if no step was
/// sampled, or nothing was communicated.
double overlap_share(std::vector<trace::RankTrace const*> const& ranks);

}  // namespace stratagem
