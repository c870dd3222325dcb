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
/// the CPU. Types F64, F32, F16, BF16, I64. Error(bad_data) saying what is wrong and where, if the
/// file is not exactly what its header promises; nothing is allocated for a tensor that it cannot
/// hold.
TensorMap read_safetensors(std::filesystem::path const& path);
/// The same, one tensor at a time, in the order of the data.
void read_safetensors(std::filesystem::path const& path,
                      std::function<void(std::string const& name, at::Tensor const&)> const& visit);

/// Writes the tensors, whose names keep this order in the header, one after the other beside `path`
/// and renames the whole file over it. Error(io).
void write_safetensors(std::filesystem::path const& path,
                       std::vector<std::pair<std::string, at::Tensor>> const& tensors);

}  // namespace stratagem
