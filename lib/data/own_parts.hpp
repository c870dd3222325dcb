#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// How the user's own data stand on disk: images, or text whose tokens are its bytes or in shards.
enum class OwnLayout { folder, tar, hdf5, bytes, shards };

/// What data.path holds to train on and to evaluate.
struct OwnParts {
  OwnLayout layout;
  std::vector<std::filesystem::path> train, val;  ///< the folder, or the files in order of names
  std::vector<std::string> remarks = {};          ///< what is there and not read

  bool is_text() const { return layout == OwnLayout::bytes || layout == OwnLayout::shards; }
};

/// Finds the parts by content, not by name alone: the first bytes of a lone file tell whether it is
/// text or a shard of tokens; in a folder, text beside images is a list of them. Files are those
/// whose names begin with "train" and "val"; where there are none, those with such a word in them.
/// `val` may be empty. Error(usage) for a lone file of other content; Error(bad_data) for a path
/// that holds nothing to train on, or two layouts.
OwnParts find_own_parts(std::filesystem::path const& path);

}  // namespace stratagem
