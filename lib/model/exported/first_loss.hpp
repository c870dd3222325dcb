#pragma once

#include "model/model.hpp"

namespace stratagem {

/// Compares the first loss of an exported model with the one that analysis/export_model.py wrote
/// into the file: of a few samples that are functions of their place, in training without random
/// masks and in evaluation, from the file's weights, in fp32 on the CPU, in the model's memory
/// format. Nothing where the file has none. Error(bad_data) with both losses.
void check_first_loss(ModelConfig const& config, Model const& model, InputShape const& input);

}  // namespace stratagem
