#pragma once

#include <filesystem>
#include <vector>

namespace stratagem {

/// What is in a folder, without hidden entries, in no order. Error(bad_data) if it cannot be read.
std::vector<std::filesystem::directory_entry> list_folder(std::filesystem::path const& folder);

}  // namespace stratagem
