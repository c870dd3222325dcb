#pragma once

#include <source_location>

namespace stratagem {

/// Throws std::logic_error. A broken contract is a bug of this program, not a fault of its input.
[[noreturn]] void contract_violation(char const* kind, char const* text,
                                     std::source_location where);

/// Precondition of the calling function.
inline void expects(bool holds, char const* text,
                    std::source_location where = std::source_location::current()) {
  if (!holds) contract_violation("precondition", text, where);
}

/// Postcondition or invariant of the calling function.
inline void ensures(bool holds, char const* text,
                    std::source_location where = std::source_location::current()) {
  if (!holds) contract_violation("postcondition", text, where);
}

}  // namespace stratagem
