#pragma once

#include <cstdint>
#include <vector>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// Parameters that are sent together between a worker and the server that owns them.
struct ServerChunk {
  int index = 0;  ///< in the plan
  FlatRange range;
  int server = 0;
  std::int64_t offset = 0;  ///< start in the server's shard [elements]
};

/// Which server owns which part of the flat space: a value, the same on all ranks.
struct ServerPlan {
  std::vector<ServerChunk> chunks;   ///< from the end of the flat space to its start, without gaps
  std::vector<std::int64_t> shards;  ///< elements of each server's shard, with padding
  std::vector<std::int64_t> loads;   ///< number of parameters of each server

  int servers() const { return static_cast<int>(shards.size()); }
  /// The chunks of one server, in the order of `chunks`.
  std::vector<ServerChunk> chunks_of(int server) const;
  /// Largest load divided by the mean load; 1 is perfectly even.
  double imbalance() const;
  std::uint64_t hash() const;
};

/// As many as message tags can distinguish.
inline constexpr std::int64_t max_chunks = 8000;

/// Divides the flat space, from its end (whose gradients come first) to its start, into chunks of
/// `chunk_bytes` with bounds at multiples of 4 KiB. Assigns each chunk, the largest first, to the
/// server with the smallest load so far (Graham, "Bounds on multiprocessing timing anomalies",
/// 1969). Error(usage) if there are more servers than chunks, or more chunks than `max_chunks`.
ServerPlan make_server_plan(ParameterLayout const& layout, int servers, std::int64_t chunk_bytes,
                            std::int64_t element_size);

}  // namespace stratagem
