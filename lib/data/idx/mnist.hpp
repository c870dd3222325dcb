#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace stratagem {

/// MNIST (LeCun, Cortes, Burges, "The MNIST database of handwritten digits", 1998) from its four
/// IDX files. Each is plain or, if there is no plain file, has .gz. Any number of images.
Dataset read_mnist(std::filesystem::path const& folder);

}  // namespace stratagem
