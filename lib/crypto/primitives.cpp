#include "crypto/primitives.hpp"

#include <string>

#include "base/error.hpp"

namespace stratagem::crypto {

void require_available(std::string_view what) {
  if (!available())
    throw Error(ExitCode::environment, std::string(what) + " needs OpenSSL 3",
                "this program was built without it",
                "install libssl-dev and build again, or leave the setting out");
}

}  // namespace stratagem::crypto
