#pragma once

#include <filesystem>
#include <string>

#include "base/files/file.hpp"
#include "trace/records.hpp"

namespace stratagem {

/// metrics.csv: one line per epoch.
class Metrics {
 public:
  /// Starts the file, or appends to what an earlier attempt wrote.
  explicit Metrics(std::filesystem::path const& path, int attempt);

  void add(trace::EpochRecord const& epoch, std::int64_t step, double lr);

 private:
  AppendFile file_;
  int attempt_;
};

}  // namespace stratagem
