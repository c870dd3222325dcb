#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/compression.hpp"

namespace stratagem::block_codes {

// Of `blocks` blocks. `draws`: 8 random bits per element to round with, or null to round to the
// nearest, ties to even.

using Encode = void (*)(float const* values, std::int64_t blocks, std::uint8_t const* draws,
                        std::byte* wire);
using Decode = void (*)(std::byte const* wire, std::int64_t blocks, float* values);

struct Functions {
  Encode encode = nullptr;
  Decode decode = nullptr;
  bool rounds = false;  ///< false if it never draws
};

/// None for a code that writes no blocks.
Functions functions_of(Code code);

}  // namespace stratagem::block_codes
