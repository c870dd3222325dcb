#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace stratagem::test {

/// The model of ctest/model/files/tiny.py, exported by a version of torch.
std::filesystem::path tiny_exported(std::string const& torch = "2.11");

/// Contents of an archive's records, by name.
using Records = std::map<std::string, std::string>;

/// Writes tiny_exported() to `target`, with records that were changed.
void write_changed(std::filesystem::path const& target, std::function<void(Records&)> const& change,
                   std::string const& torch = "2.11");

}  // namespace stratagem::test
