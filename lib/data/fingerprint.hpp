#pragma once

#include <string>

#include "data/dataset.hpp"

namespace stratagem {

/// 16 hex digits that differ between data sets that a training tells apart. Of images and labels in
/// memory, over all of them. Of text, over names, sizes and samples of its files. Of images on
/// disk, over names and labels of all, the sizes of up to 16,384, and the stored bytes of 64 to
/// 4,096, as many as 16 MiB hold: reading all of them would take an epoch. Those that are looked at
/// are spread over the set. Error(bad_data) for an image that cannot be read.
std::string fingerprint(Dataset const& dataset);

}  // namespace stratagem
