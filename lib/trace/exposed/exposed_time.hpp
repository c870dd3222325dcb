#pragma once

#include <vector>

#include "trace/rank_trace.hpp"

namespace stratagem::trace {

/// What the exposed communication of all workers was, summed over the sampled steps of which that
/// can be told [ns].
struct ExposedTime {
  std::int64_t transfer = 0;  ///< data moved, or a message was on its way
  std::int64_t waiting = 0;   ///< others had not come so far, and were waited for
  std::int64_t server = 0;    ///< a server worked on a push, this worker's or one before it

  std::int64_t total() const { return transfer + waiting + server; }
};

/// Of strategies that communicate by collectives: a rank waits from when it has begun the
/// operation that ends next until the last rank has begun it. Steps in which ranks recorded
/// different operations are left out.
ExposedTime exposed_to_collectives(std::vector<RankTrace const*> const& ranks);

/// Of workers of parameter servers; the workers are in the order of their numbers.
/// - Servers that update with all workers' gradients: workers wait until the last worker has
///   announced its push. From then until the last gradient has come, the time that the worker with
///   the least was exposed counts as transfer, and what others were exposed longer as waiting.
/// - Servers that treat each push by itself: a worker waits from when its push was applied until
///   the version was made that it goes on with.
/// What is neither waiting nor a server's work is transfer.
ExposedTime exposed_to_servers(std::vector<RankTrace const*> const& workers,
                               std::vector<RankTrace const*> const& servers);

}  // namespace stratagem::trace
