#pragma once

#include "h5/array_place.hpp"
#include "h5/handle.hpp"
#include "h5/stored_array.hpp"

namespace stratagem::h5 {

/// Where the bytes of an open dataset of unsigned bytes stand, in the file that holds it: a link
/// may lead to another one. `row_bytes`: of one image. Error(bad_data) for bytes that are not in
/// one block or in chunks of whole rows, unpacked or packed by gzip, and for those that are not
/// there.
StoredArray find_pieces(ArrayPlace const& place, Handle const& dataset,
                        std::vector<std::int64_t> const& shape, std::int64_t row_bytes);

}  // namespace stratagem::h5
