#pragma once

#include "data/batch.hpp"

namespace stratagem {

/// How fast the training images of a dataset on disk become a model's input, augmented, with
/// format.threads [images/s]. Reads for about `seconds` after a first batch.
double read_rate(Dataset const& dataset, InputFormat const& format, double seconds);

}  // namespace stratagem
