#pragma once

#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem {

/// Of the time in which communication was under way while a step computed, the share that the
/// computation did not wait for: 1 - waited / union of the communication's spans, over the sampled
/// steps of these ranks. NaN where none was sampled, or nothing communicated.
double overlap_share(std::vector<trace::RankTrace const*> const& ranks);

}  // namespace stratagem
