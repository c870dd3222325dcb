#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/block.hpp"
#include "model/model_config.hpp"

namespace stratagem {

/// What a model must know about the data: images, or text.
struct InputShape {
  std::int64_t channels = 3;
  std::int64_t size = 32;   ///< height and width; 0: whatever the file of an exported model takes
  std::int64_t tokens = 0;  ///< of a sequence of text; 0: images
  std::int64_t vocabulary = 0;  ///< different tokens of the text

  bool is_text() const { return tokens > 0; }
};

/// Zeros for so many samples: images [n, channels, size, size], or tokens, int64 [n, T]. `options`:
/// of images.
at::Tensor blank_input(InputShape const& shape, std::int64_t samples,
                       at::TensorOptions const& options = {});
/// Labels 0 for them: int64 [n], or [n, T].
at::Tensor blank_labels(InputShape const& shape, std::int64_t samples);

/// An ordered list of blocks, from images [n, channels, size, size] to logits [n, classes], or from
/// tokens [n, T] to logits [n, T, classes].
struct Model {
  std::string name;
  Blocks blocks;
  MemoryFormat memory_format = MemoryFormat::contiguous;  ///< never automatic
  std::vector<std::string>
      head;                  ///< names of the last layer's tensors, which depend on num_classes
  std::int64_t classes = 0;  ///< logits of a sample, or of each token
  bool fused = true;         ///< see ModelConfig
  /// [pixels] Up to this size, a BatchNorm gets 1x1 maps and cannot train with one sample; 0: none.
  std::int64_t two_sample_input = 0;
  std::int64_t most_samples = 0;    ///< of a pass, that its file was exported for; 0: any number
  bool waits_for_device = false;    ///< in a pass, to learn how much there is to do
  std::string graph;                ///< digest of an exported graph; empty for a model of the zoo
  std::vector<std::string> unused;  ///< parameters whose gradient is always 0
  /// Further names of parameters that are used as several, to those under which they are declared.
  std::map<std::string, std::string> tied;
  /// The declared name for one that other programs write; "" for what is no state. None: the same.
  std::string (*declared_name)(std::string const& name) = nullptr;
  /// Of a forward and a backward pass, for one label; 0: not known. By the rule of Chowdhery et
  /// al., "PaLM", 2022, appendix B: 6 per parameter that is multiplied, 12 per layer, width and
  /// token that attention sees.
  double train_flops = 0;
  /// What other programs must know of the model to load its weights: config.json of Hugging Face's
  /// transformers. Empty: nothing.
  std::string card;

  std::int64_t parameter_count() const;
  /// Whole tensors; a tensor that is divided into parts counts once.
  std::int64_t parameter_tensors() const;
  /// A pass of other samples normalises each of them otherwise (BatchNorm in training).
  bool mixes_samples() const;
};

/// One model that can be selected by name.
struct ModelEntry {
  std::string name;
  std::string description;
  std::int64_t input_channels;  ///< 0: the dataset's; 3 for torchvision's models
  std::int64_t smallest_input;  ///< [pixels]
  /// [pixels] Up to this size, a BatchNorm gets 1x1 maps and cannot train with one sample; 0: none.
  std::int64_t two_sample_input;
  MemoryFormat fastest_format;
  Model (*make)(ModelConfig const& config, InputShape const& input);
  bool transformer = false;      ///< takes model.layers, heads, width, dropout_rate
  bool takes_text = false;       ///< and model.context and tie
  std::int64_t usual_size = 32;  ///< of images [pixels]
};

/// Images or text as the model is usually given: of channels as it wants them.
InputShape usual_input(ModelEntry const& entry);

std::vector<ModelEntry> const& model_zoo();

/// Error(usage) for an unknown name, or an input that the model cannot process; for a file as
/// make_exported_model().
Model make_model(ModelConfig const& config, InputShape const& input);
/// Channels of the images that the model wants; 0: the dataset's. Errors as make_model().
std::int64_t input_channels(ModelConfig const& config);
ModelEntry const& find_model(std::string const& name);

}  // namespace stratagem
