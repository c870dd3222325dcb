#pragma once

#include <exception>

#include "base/error.hpp"

namespace stratagem {

/// Any failure as one that has an exit code: running out of memory, on the host or on a GPU, is
/// out_of_memory; what nobody foresaw is unexpected.
Error as_error(std::exception const& failure);

}  // namespace stratagem
