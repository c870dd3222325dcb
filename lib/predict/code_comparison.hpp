#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/model.hpp"
#include "plan/run_plan.hpp"
#include "predict/calibration.hpp"
#include "strategy/timing/step_time.hpp"

namespace stratagem {

/// Nothing of a strategy that cannot code gradients.
Compression const* compression_of(StrategyConfig const& strategy);

/// The same run with its gradients in one code.
struct ComparedCode {
  Compression compression;
  std::int64_t bytes_sent = 0;  ///< by each rank, per step
  std::int64_t held = 0;        ///< lasting bytes of a rank, without buffers of the model's passes
  StepTime step;
  /// The bandwidth of a rank's link, each way [B/s], below which the step is shorter than in fp32,
  /// all else as measured; 0 where it never is, infinite where it is without a limit too.
  double pays_below = 0;
};

/// Every code of the strategy that the calibration knows, fp32 first: with what the plan has of
/// rounding and feedback, or feedback where it has no code. Empty where that is no choice: the
/// strategy codes nothing, one rank sends nothing, GPUs code nothing, or none was measured.
std::vector<ComparedCode> compare_codes(RunPlan const& plan, Model const& model,
                                        Calibration const& calibration);

/// A table, or nothing for nothing; and the same as JSON.
std::string codes_text(std::vector<ComparedCode> const& codes);
nlohmann::json codes_json(std::vector<ComparedCode> const& codes);

}  // namespace stratagem
