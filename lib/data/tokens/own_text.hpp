#pragma once

#include "data/dataset.hpp"
#include "data/own_parts.hpp"

namespace stratagem {

/// Text of the user, which `parts` of data.path are, one part to train on and one to evaluate:
///  - a file, or train*.txt and val*.txt: every byte is a token;
///  - shards of tokens, one or train*.bin and val*.bin: see read_shard_header().
/// Without the second part, data.holdout takes it from the first, else its last tenth is taken.
/// Reads headers and no tokens. Error(bad_data) names file, expected and found; also when a part is
/// too short for a sequence.
Dataset open_own_text(DataConfig const& config, OwnParts const& parts);

}  // namespace stratagem
