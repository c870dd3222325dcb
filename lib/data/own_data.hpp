#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.hpp"

namespace stratagem {

/// Text of the user, see open_own_text(), or images, in the folder data.path, with one part to
/// train on and one to evaluate:
///  - folder: train/<class>/*.jpg, *.jpeg or *.png, and val/<class>/...; see FolderImages;
///  - tar: train*.tar and val*.tar, see ShardImages;
///  - hdf5: train*.h5 or *.hdf5 and val*.h5, see Hdf5Images.
/// Which of them is told by what is there, see find_own_parts(). Without the second part,
/// data.holdout takes it from the first. Lists files and reads labels, but of images only a few.
/// Error(bad_data) names file, expected and found; Error(usage) if nothing is left to evaluate, or
/// for means of another number of channels.
Dataset open_own_data(DataConfig const& config);

/// Channels of the images in the folder `path`; 0: as many as are asked for. Errors as above.
std::int64_t own_channels(std::string const& path);

}  // namespace stratagem
