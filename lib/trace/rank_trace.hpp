#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "h5/reader.hpp"
#include "trace/schema.hpp"

namespace stratagem::trace {

/// What one rank recorded, read back.
struct RankTrace {
  std::filesystem::path path;
  std::string group;           ///< "" in a rank's own file, "/rank-0003" in a collected one
  bool closed_cleanly = true;  ///< false when the writer was killed or still writes
  Status status = Status::running;
  std::int64_t dropped = 0;  ///< records lost because a queue was full
  std::map<std::string, h5::AttributeValue> provenance;
  std::map<std::string, h5::AttributeValue> process;
  std::map<std::string, h5::TableData> tables;  ///< by path as in the schema

  h5::TableData const& table(h5::TableSpec const& spec) const { return tables.at(spec.path); }
  int rank() const;
};

/// Error(io) for a file that HDF5 cannot read, Error(bad_data) for one of another schema.
RankTrace read_rank_trace(std::filesystem::path const& path);

/// "rank-0007": what the files and groups of a rank are called.
std::string rank_label(int rank);

/// All ranks of a collected file.
std::vector<RankTrace> read_collected_trace(std::filesystem::path const& path);

/// Which of the two a file is, by its schema_name; "" when it is neither.
std::string schema_of(std::filesystem::path const& path);

}  // namespace stratagem::trace
