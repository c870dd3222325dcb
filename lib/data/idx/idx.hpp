#pragma once

#include <filesystem>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "data/dataset.hpp"

namespace stratagem {

struct IdxFile {
  at::Tensor values;  ///< uint8, of the shape the header states
  SourceFile source;
};

/// Reads an IDX file of unsigned bytes with `dimensions` sizes, none of them 0; with gzip if its
/// name ends in .gz. Error(bad_data) unless it is exactly as long as its header says. A header that
/// promises more than the file can hold, or more than 1 GiB for a .gz, is refused before memory is
/// allocated.
IdxFile read_idx(std::filesystem::path const& path, std::size_t dimensions,
                 std::string_view published_sha256);

}  // namespace stratagem
