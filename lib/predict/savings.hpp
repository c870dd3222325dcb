#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/forecast.hpp"
#include "predict/room.hpp"

namespace stratagem {

/// A change of a run with which a rank holds less.
struct Saving {
  /// What it takes from the training.
  enum class Price { nothing, batch_norm, batch };

  std::string change;           ///< "micro_batches: 8", "--ranks 8"
  std::int64_t peak_bytes = 0;  ///< of a rank that computes, then
  Price price = Price::nothing;
  std::string price_text;  ///< "BatchNorm sees 16 images, not 64"; "rounding only"
};

/// What makes a rank of `forecast` hold at least 1 % less: more micro-batches, recomputation, both,
/// more ranks, a smaller batch; of each as much as is needed for `room`, or, where that is not
/// known or suffices, until a rank holds half; ranks are doubled and batches halved once, then.
/// Those with which the training stays as it is come first. `predictor`: nullptr where only what
/// lasts is counted.
std::vector<Saving> savings_of(Forecast const& forecast, Model const& model,
                               ActivationPredictor* predictor, Room const& room);

}  // namespace stratagem
