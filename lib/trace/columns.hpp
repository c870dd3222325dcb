#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "h5/column.hpp"
#include "trace/records.hpp"

namespace stratagem::trace {

/// A column of a table, declared once: its name in the file, unit and meaning, and what a record
/// has in it.
template <class Record>
struct Column {
  using Integer = std::function<std::int64_t(Record const&)>;
  using Real = std::function<double(Record const&)>;

  std::string name, unit, long_name;
  std::variant<Integer, Real> value;  ///< in the order of h5::ColumnType
};

template <class Record>
using Columns = std::vector<Column<Record>>;

/// A row of /status.
struct StatusRow {
  std::int64_t t = 0, status = 0, dropped = 0;
};

/// A row of /clock.
struct ClockRow {
  std::int64_t monotonic = 0, wall = 0, offset_to_rank0 = 0, uncertainty = 0;
};

Columns<StatusRow> const& status_columns();
Columns<ClockRow> const& clock_columns();
Columns<StepRecord> const& step_columns();
Columns<EpochRecord> const& epoch_columns();
Columns<PsRecord> const& ps_columns();
Columns<SpanRecord> const& span_columns();
Columns<MemoryRecord> const& memory_columns();
Columns<MemoryRecord> const& memory_breakdown_columns();
Columns<DeviceRecord> const& device_columns();
Columns<EventRecord> const& event_columns();

template <class Record>
h5::TableSpec table_of(std::string path, Columns<Record> const& columns) {
  h5::TableSpec table{std::move(path), {}};
  for (auto const& [name, unit, long_name, value] : columns)
    table.columns.push_back({name, static_cast<h5::ColumnType>(value.index()), unit, long_name});
  return table;
}

/// The columns' values of all records.
template <class Record>
std::vector<h5::ColumnData> values_of(Columns<Record> const& columns,
                                      std::vector<Record> const& records) {
  auto const gather = [&](auto values, auto const& value) -> h5::ColumnData {
    values.reserve(records.size());
    for (auto const& record : records) values.push_back(value(record));
    return values;
  };
  std::vector<h5::ColumnData> data;
  for (auto const& column : columns) {
    auto const* integer = std::get_if<typename Column<Record>::Integer>(&column.value);
    data.push_back(integer != nullptr ? gather(h5::Integers(), *integer)
                                      : gather(h5::Reals(), std::get<1>(column.value)));
  }
  return data;
}

}  // namespace stratagem::trace
