#pragma once

#include <limits>
#include <map>
#include <string>

#include "trace/rank_trace.hpp"

namespace stratagem {

/// All tables of the schema, without rows.
inline trace::RankTrace empty_trace(std::int64_t rank) {
  trace::RankTrace trace;
  trace.status = trace::Status::complete;
  trace.provenance = {{"strategy", "ddp"}, {"model", "lenet"}, {"dataset_name", "mnist"}};
  trace.process = {{"rank", rank}};
  for (auto const& spec : trace::tables()) {
    auto& table = trace.tables[spec.path];
    for (auto const& column : spec.columns) {
      if (column.type == h5::ColumnType::integer) table.columns[column.name] = h5::Integers{};
      if (column.type == h5::ColumnType::real) table.columns[column.name] = h5::Reals{};
      if (column.type == h5::ColumnType::text) table.columns[column.name] = h5::Texts{};
    }
  }
  return trace;
}

/// Appends a row: what `values` does not name is 0, NaN or empty.
inline void add_row(trace::RankTrace& trace, std::string const& path,
                    std::map<std::string, double> const& values) {
  auto& table = trace.tables.at(path);
  ++table.rows;
  for (auto& [name, column] : table.columns) {
    auto const given = values.find(name);
    bool const known = given != values.end();
    if (auto* integers = std::get_if<h5::Integers>(&column))
      integers->push_back(known ? static_cast<std::int64_t>(given->second) : 0);
    if (auto* reals = std::get_if<h5::Reals>(&column))
      reals->push_back(known ? given->second : std::numeric_limits<double>::quiet_NaN());
    if (auto* texts = std::get_if<h5::Texts>(&column)) texts->emplace_back();
  }
}

}  // namespace stratagem
