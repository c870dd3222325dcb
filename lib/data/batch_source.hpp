#pragma once

#include <cstdint>
#include <optional>

#include "data/batch.hpp"
#include "data/sampler.hpp"

namespace stratagem {

/// Where the batches of one rank come from. It hands out those it was made for, or those it is
/// asked for.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Wants one more batch, after all that were wanted before.
  virtual void ask(Share const& share) = 0;
  /// The next batch of a step before `end_step`; nothing when there is none.
  virtual std::optional<Batch> next(std::int64_t end_step) = 0;
};

}  // namespace stratagem
