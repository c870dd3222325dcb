#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// What is in a folder, without hidden entries, in no order. Error(bad_data) if it cannot be read.
std::vector<std::filesystem::directory_entry> list_folder(std::filesystem::path const& folder);

/// Of these, whose names begin with `prefix` and end with one of `endings`, such as ".tar"; in the
/// order of their names.
std::vector<std::filesystem::path> files_named(std::filesystem::path const& folder,
                                               std::string const& prefix,
                                               std::vector<std::string> const& endings);

}  // namespace stratagem
