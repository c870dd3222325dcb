#pragma once

#include <filesystem>
#include <string>

#include "model/model.hpp"
#include "model/safetensors.hpp"

namespace stratagem {

/// What can be said about a model file without running it.
struct ExportedInput {
  std::int64_t channels = 0;
  std::int64_t size = 0;  ///< height and width [pixels]; 0: the input is no image
  std::int64_t classes = 0;
  std::string shape;  ///< of the input, with its type
};

/// Error(usage): it is no image.
[[noreturn]] void refuse_input(std::filesystem::path const& file, ExportedInput const& input);

/// Error(bad_data) for whatever read_program() refuses.
ExportedInput exported_input(std::filesystem::path const& file);

/// The model in a file of torch.export, divided into blocks. Its parameters have no initial values
/// but those of the file. Error(bad_data) for whatever read_program() refuses, and for operators
/// that a training cannot run. Error(usage) for images of another size, or another number of
/// classes than the file's.
Model make_exported_model(ModelConfig const& config, InputShape const& input);

/// Runs the blocks once, on the CPU, with two samples and all parameters 0. Error(bad_data) if an
/// operator refuses its inputs, or if the logits have another shape than the graph says.
void try_exported_model(Model const& model, InputShape const& input);

/// Parameters and buffers as exported, by the names of the state_dict.
TensorMap exported_state(std::filesystem::path const& file);

}  // namespace stratagem
