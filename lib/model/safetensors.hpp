#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stratagem {

using TensorMap = std::map<std::string, at::Tensor>;

/// All tensors of a safetensors file (8-byte little-endian header length, JSON header, data), on
/// the CPU, of all types but complex ones. Error(bad_data) that says what is wrong and where,
/// unless the file is exactly as its header says. Nothing is allocated for a tensor that the file
/// cannot contain.
TensorMap read_safetensors(std::filesystem::path const& path);
/// The same, one tensor at a time, in the order of the data.
void read_safetensors(std::filesystem::path const& path,
                      std::function<void(std::string const& name, at::Tensor const&)> const& visit);

/// Writes the tensors to a temporary file next to `path`, in this order in header and data, and
/// renames the complete file to `path`. `metadata` stands before them. Error(io).
void write_safetensors(std::filesystem::path const& path,
                       std::vector<std::pair<std::string, at::Tensor>> const& tensors,
                       std::map<std::string, std::string> const& metadata = {});

/// Says that tensors are as PyTorch has them: some readers insist on it.
inline std::map<std::string, std::string> weights_metadata() {
  return {{"format", "pt"}};
}

}  // namespace stratagem
