#pragma once

#include <exception>

#include "base/error.hpp"

namespace stratagem {

/// Gives any exception an exit code: running out of memory, on the host or on a GPU, is
/// out_of_memory; anything that the program does not expect is unexpected.
Error as_error(std::exception const& failure);

}  // namespace stratagem
