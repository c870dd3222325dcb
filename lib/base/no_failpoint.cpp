#include "base/error.hpp"
#include "base/failpoint.hpp"

namespace stratagem {

Failpoints::Failpoints(std::string_view text, int) {
  if (!text.empty())
    throw Error(ExitCode::usage, "STRATAGEM_FAIL is set, but no fault can be planted",
                "this program was built without -D STRATAGEM_FAILPOINTS=ON",
                "unset it, or build the program for tests");
}

// Never called: this build injects no faults.
void Failpoints::act(std::string_view, std::int64_t) const {}
bool Failpoints::flip(std::string_view, std::int64_t, std::span<std::byte>) const {
  return false;
}

}  // namespace stratagem
