#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace stratagem {

/// MNIST (LeCun, Cortes, Burges, "The MNIST database of handwritten digits", 1998) from its four
/// IDX files, each plain or, where there is no plain one, with .gz; any number of images.
Dataset read_mnist(std::filesystem::path const& folder);

}  // namespace stratagem
