#pragma once

#include <cstdint>
#include <vector>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// Parameters of a unit that compute in the same type, and are communicated as one piece: N
/// consecutive shards of equal size; the last ones are padded.
struct Chunk {
  /// The place of one parameter.
  struct Place {
    std::size_t entry = 0;    ///< of the layout
    std::int64_t offset = 0;  ///< in the chunk [elements]
  };

  bool low_precision = false;  ///< is rounded to be computed with, if the run does that
  std::vector<Place> places;
  std::int64_t used = 0;   ///< elements up to the end of the last parameter, aligned
  std::int64_t shard = 0;  ///< elements of each rank's shard
  std::int64_t owned = 0;  ///< where that shard begins in the space that a rank owns
};

/// Consecutive blocks that are gathered together, and whose gradients are reduced together.
struct Unit {
  int first_block = 0;
  int last_block = 0;
  std::vector<Chunk> chunks;  ///< at most one per type; low precision comes first
};

/// Which rank owns which elements of the parameters, if every unit is divided into one shard per
/// rank: rank r owns elements [r shard, (r + 1) shard) of every chunk. A value, the same on all
/// ranks.
struct ShardPlan {
  int ranks = 1;
  std::vector<Unit> units;  ///< in forward order; every block is in one
  std::int64_t owned = 0;   ///< elements that each rank owns

  int unit_of(int block) const;
  /// Padded elements of all units.
  std::int64_t elements() const { return owned * ranks; }
  std::uint64_t hash() const;
};

/// Blocks are added to a unit until it holds `unit_elements`, or parameters that later blocks
/// borrow; blocks are never divided. `mixed`: parameters that may compute in low precision are
/// separated from the others.
ShardPlan make_shard_plan(ParameterLayout const& layout, int ranks, std::int64_t unit_elements,
                          bool mixed);

/// The ranges of a chunk that contain no parameter.
std::vector<FlatRange> gaps(Chunk const& chunk, ParameterLayout const& layout, int ranks);

}  // namespace stratagem
