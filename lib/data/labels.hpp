#pragma once

#include <string>

#include "data/dataset.hpp"

namespace stratagem {

/// Names the labels of images to evaluate that no image to train on has: a model cannot have learnt
/// them. "label 7, that of val.h5: images[3]"; empty if there are none, and for text.
std::string untrained_labels(Dataset const& dataset);

/// Error(bad_data) if there are some.
void require_trained_labels(Dataset const& dataset, std::string const& cure);

}  // namespace stratagem
