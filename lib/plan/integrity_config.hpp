#pragma once

#include <cstdint>

namespace stratagem {

/// Section `integrity` of the configuration.
struct IntegrityConfig {
  /// Steps from one comparison of what ranks hold alike to the next; every save has one, too. 0:
  /// none at all.
  std::int64_t hash_every = 100;
};

}  // namespace stratagem
