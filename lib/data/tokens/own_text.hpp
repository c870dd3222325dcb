#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace stratagem {

/// Whether `path` is text: a file, or a folder that holds train*.txt or train*.bin.
bool is_text(std::filesystem::path const& path);

/// Text of the user at data.path, one part to train on and one to evaluate:
///  - a file, or train*.txt and val*.txt: every byte is a token;
///  - train*.bin and val*.bin: tokens see read_shard_header().
/// Without the second part, data.holdout takes it from the first, else its last tenth is taken.
/// Reads headers and no tokens. Error(bad_data) names file, expected and found; also when a part is
/// too short for a sequence.
Dataset open_own_text(DataConfig const& config);

}  // namespace stratagem
