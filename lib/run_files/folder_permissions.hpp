#pragma once

#include <filesystem>

namespace stratagem {

/// Error(environment) where somebody else could read or replace what a run writes into `folder`,
/// which need not exist: it is a link or another user's, or everybody may write into it, or into
/// the folder that holds it (unless that keeps everybody from others' files, as /tmp does).
void require_own_folder(std::filesystem::path const& folder);

/// With those above it. The folder itself is for its owner alone. Error(io) naming --out, by which
/// users choose where results go.
void make_own_folder(std::filesystem::path const& folder);

}  // namespace stratagem
