#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plan/run_config.hpp"

namespace stratagem {

/// A row of cells.csv: one run of a study.
struct CellEntry {
  int index = 0;      ///< from 0, in the order of the matrix
  std::string name;   ///< of its run directory; unique
  std::string group;  ///< the name without the seed; cells of a group are repetitions
  std::string part;
  std::string model, dataset;
  std::string variant;   ///< the name of the strategy and its options in tables
  std::string strategy;  ///< strategy.name
  int workers = 1, servers = 0;
  std::uint64_t seed = 1;
  std::int64_t global_batch = 0;  ///< samples per step of all workers
  std::int64_t input_size = 0;    ///< [pixels]
  std::string precision;
  std::int64_t epochs = 0, max_steps = 0;
  int threads = 0;
  std::string settings;  ///< values from the matrix: path=value;path=value

  int ranks() const { return workers + servers; }
};

/// One run of a study.
struct Cell {
  CellEntry entry;
  RunConfig config;  ///< without run.out, which depends on where the study is
};

/// Fills in what the configuration determines; does not change name, group, part, variant, workers,
/// index and settings.
void describe(CellEntry& cell, RunConfig const& config);

/// The content of cells.csv: a header line, then one line per cell.
std::string cells_csv(std::vector<CellEntry> const& cells);

/// Reads it back. Error(bad_data) with the first line that is not as cells_csv writes it.
std::vector<CellEntry> read_cells(std::filesystem::path const& path);

/// The fields of a line of CSV (RFC 4180), without quotes.
std::vector<std::string> csv_fields(std::string const& line);

}  // namespace stratagem
