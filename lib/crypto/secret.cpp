#include "crypto/secret.hpp"

#include <cerrno>
#include <cstring>

#include <sys/random.h>

#include "base/error.hpp"

namespace stratagem::crypto {

void wipe(std::span<std::uint8_t> bytes) {
  ::explicit_bzero(bytes.data(), bytes.size());
}

void fill_random(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    auto const got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(ExitCode::environment, "no random bytes for keys", std::strerror(errno),
                  "look at getrandom(2) of this system, or set strategy.secure: none");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

Secret random_secret() {
  Secret secret;
  fill_random(secret.bytes());
  return secret;
}

}  // namespace stratagem::crypto
