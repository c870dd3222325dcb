#pragma once

#include <cstdint>
#include <string>

namespace stratagem {

enum class MemoryFormat { automatic, contiguous, channels_last };
/// What a weights file must hold: every tensor, or every one but the classifier's last layer.
enum class HeadWeights { strict, fresh };

/// Section `model` of the configuration.
struct ModelConfig {
  std::string name;
  std::int64_t num_classes = 10;
  std::string weights;  ///< safetensors with torchvision's names; empty initialises from the seed
  HeadWeights head = HeadWeights::strict;
  MemoryFormat memory_format = MemoryFormat::automatic;
  bool dropout = true;  ///< false also turns stochastic depth off
};

}  // namespace stratagem
