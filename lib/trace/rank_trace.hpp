#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "h5/reader.hpp"
#include "trace/schema.hpp"

namespace stratagem::trace {

/// The trace of one rank, read back.
struct RankTrace {
  std::filesystem::path path;
  std::string group;           ///< "" in a rank's own file, "/rank-0003" in a collected one
  bool closed_cleanly = true;  ///< false if the writer was killed or is still writing
  Status status = Status::running;
  std::int64_t dropped = 0;  ///< records lost because a queue was full
  std::map<std::string, h5::AttributeValue> provenance;
  std::map<std::string, h5::AttributeValue> process;
  std::map<std::string, h5::TableData> tables;  ///< by path as in the schema

  h5::TableData const& table(h5::TableSpec const& spec) const { return tables.at(spec.path); }
  int rank() const;
};

/// Error(io) if HDF5 cannot read the file, Error(bad_data) if it has another schema.
RankTrace read_rank_trace(std::filesystem::path const& path);

/// "rank-0007": the name of a rank's files and groups.
std::string rank_label(int rank);

/// All ranks of a collected file.
std::vector<RankTrace> read_collected_trace(std::filesystem::path const& path);

/// The schema_name of a file: tells which of the two kinds it is; "" if it is neither.
std::string schema_of(std::filesystem::path const& path);

}  // namespace stratagem::trace
