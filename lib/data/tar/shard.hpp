#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// An image and its label in a shard.
struct ShardSample {
  std::string key;
  std::int64_t offset = 0;  ///< of the image in the shard [B]
  std::int64_t size = 0;    ///< of the image [B]
  std::int64_t label = 0;   ///< 0 to 65535
};

/// The samples of a shard in its order: a plain tar archive in WebDataset's layout
/// (https://github.com/webdataset/webdataset), in which the files of a sample stand next to each
/// other: KEY.jpg, KEY.jpeg or KEY.png, and the label KEY.cls, an integer as text. KEY is the path
/// up to the first dot of the file's name. Keys with neither of them, other files of a key, hidden
/// files and files without a dot are ignored.
/// Error(bad_data) names file and key if one of the two is missing or there twice, if the label is
/// no integer of that range, if there is no sample, or if list_members() refuses the archive.
std::vector<ShardSample> list_samples(std::filesystem::path const& shard);

}  // namespace stratagem
