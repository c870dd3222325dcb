#pragma once

#include <cstdint>
#include <optional>

#include "data/batch.hpp"
#include "data/sampler.hpp"

namespace stratagem {

/// The source of one rank's batches: a fixed plan, or batches that are requested one by one.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Requests one more batch, after all that were requested before.
  virtual void ask(Share const& share) = 0;
  /// The next batch of a step before `end_step`; empty if there is none.
  virtual std::optional<Batch> next(std::int64_t end_step) = 0;
};

}  // namespace stratagem
