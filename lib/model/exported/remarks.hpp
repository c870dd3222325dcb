#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace stratagem {

/// Parameters that a training leaves as they are. Blocks have them as buffers.
struct Untrained {
  std::vector<std::string> names;
  std::int64_t elements = 0;
};

/// What a user must know of an exported model; nothing of one of the zoo.
struct ExportedRemarks {
  Untrained frozen;     ///< requires_grad is false
  Untrained unreached;  ///< the first output does not use them, or only past detach()
  /// Which batch norms and dropouts are in evaluation mode, in training too; empty: none.
  std::string evaluation;
  /// Which batch norms have no running statistics; empty: none.
  std::string by_batch;
};
ExportedRemarks exported_remarks(Model const& model);

/// "1,234 parameters", and how many more are not trained.
std::string parameters_text(Model const& model);

}  // namespace stratagem
