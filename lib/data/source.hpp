#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "data/dataset.hpp"

namespace stratagem {

/// Larger than any file of a published dataset, unpacked or not [bytes].
inline constexpr std::size_t most_source_bytes = 1 << 30;

/// Error(bad_data) about one file: "path: problem (expected x, found y); fetch it again ...".
Error bad_file(std::filesystem::path const& path, std::string const& problem,
               std::string const& expected, std::string const& found);

/// `root`/`folder`, which must be a folder. Error(bad_data) says what is missing and how to get it.
std::filesystem::path dataset_folder(std::string const& root, std::string const& folder);

/// The first of `names` that is a file in `folder`. Error(bad_data) if there is none.
std::filesystem::path find_file(std::filesystem::path const& folder,
                                std::vector<std::string> const& names);

/// Compares `content`, read from `path`, with the published checksum.
SourceFile identify(std::filesystem::path const& path, std::span<std::byte const> content,
                    std::string_view published_sha256);

}  // namespace stratagem
