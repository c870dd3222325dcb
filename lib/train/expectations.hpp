#pragma once

#include <map>
#include <string>

#include "data/dataset.hpp"
#include "gpu/device.hpp"
#include "plan/run_config.hpp"

namespace stratagem {

/// What section `expect` can name, and how it is here: version, git_sha, libtorch, device, ranks,
/// dataset_fingerprint (the dataset's fingerprint).
std::map<std::string, std::string> facts(Dataset const& dataset, gpu::Device const& device,
                                         int ranks);

/// Error(environment) listing everything that is not as `expect` demands.
void check_expectations(std::map<std::string, std::string> const& expect,
                        std::map<std::string, std::string> const& facts);

}  // namespace stratagem
