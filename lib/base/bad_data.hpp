#pragma once

#include <string>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {

/// Error(bad_data) "where: problem (expected x, found y); cure". `where` names a file, or a part of
/// one.
inline Error bad_data(std::string const& where, std::string const& problem,
                      std::string const& expected, std::string const& found,
                      std::string const& cure) {
  return Error(ExitCode::bad_data, str(where, ": ", problem),
               str("expected ", expected, ", found ", found), cure);
}

}  // namespace stratagem
