#include "base/contract.hpp"

#include <stdexcept>

#include "base/text.hpp"

namespace stratagem {

void contract_violation(char const* kind, char const* text, std::source_location where) {
  throw std::logic_error(str(where.file_name(), ":", where.line(), ": ", kind, " does not hold in ",
                             where.function_name(), ": ", text));
}

}  // namespace stratagem
