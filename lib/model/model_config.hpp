#pragma once

#include <cstdint>
#include <string>

namespace stratagem {

enum class MemoryFormat { automatic, contiguous, channels_last };
/// What a weights file must contain: every tensor, or every tensor except the classifier's last
/// layer.
enum class HeadWeights { strict, fresh };

/// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016):
/// the first block and every `every`-th after it keep only their input for the backward pass, which
/// runs them again. The others keep what autograd keeps. 0: no block, 1: all blocks.
struct Recompute {
  int every = 0;

  bool applies_to(int block) const { return every > 0 && block % every == 0; }
};

/// Section `model` of the configuration.
struct ModelConfig {
  std::string name;               ///< of the zoo's model, or of the file without folder and ending
  std::string file;               ///< exported by torch.export; empty: a model of the zoo
  std::int64_t num_classes = 10;  ///< 0: as many as the file's; of text, as its vocabulary
  std::string weights;  ///< safetensors with torchvision's names; empty: initialised from the seed
  HeadWeights head = HeadWeights::strict;
  MemoryFormat memory_format = MemoryFormat::automatic;
  Recompute recompute;  ///< `none`, `all`, `every_2`, `every_3`, ...
  bool dropout = true;  ///< false also disables stochastic depth
  bool frozen = false;  ///< of a file: layers that are in evaluation mode are meant to be
  /// Layers are computed in the program's own ways where these are faster; off: by LibTorch alone.
  bool fused = true;
  // Of transformers; 0: as the model of that name has it.
  std::int64_t layers = 0, heads = 0, width = 0;
  std::int64_t patch = 0;    ///< of those of images, edge [pixels]
  std::int64_t context = 0;  ///< of those of text, longest sequence [tokens]
  std::int64_t experts = 0;  ///< of those of text, in every second layer; 0: none
  bool tie = true;           ///< of those of text: the head shares the token embedding
  double dropout_rate = 0;
};

}  // namespace stratagem
