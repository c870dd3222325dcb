#include "trace/schema.hpp"

#include "trace/columns.hpp"

namespace stratagem::trace {

using h5::TableSpec;

TableSpec const& status_table() {
  static auto const spec = table_of("/status", status_columns());
  return spec;
}

TableSpec const& clock_table() {
  static auto const spec = table_of("/clock", clock_columns());
  return spec;
}

TableSpec const& names_table() {
  static TableSpec const spec{
      "/names",
      {{"name", h5::ColumnType::text, "", "text that other tables refer to by row number"}}};
  return spec;
}

TableSpec const& steps_table() {
  static auto const spec = table_of("/steps", step_columns());
  return spec;
}

TableSpec const& epochs_table() {
  static auto const spec = table_of("/epochs", epoch_columns());
  return spec;
}

TableSpec const& spans_table() {
  static auto const spec = table_of("/spans", span_columns());
  return spec;
}

TableSpec const& ps_table() {
  static auto const spec = table_of("/ps", ps_columns());
  return spec;
}

TableSpec const& memory_table() {
  static auto const spec = table_of("/memory", memory_columns());
  return spec;
}

TableSpec const& memory_breakdown_table() {
  static auto const spec = table_of("/memory/breakdown", memory_breakdown_columns());
  return spec;
}

TableSpec const& device_table() {
  static auto const spec = table_of("/device", device_columns());
  return spec;
}

TableSpec const& events_table() {
  static auto const spec = table_of("/events", event_columns());
  return spec;
}

std::vector<TableSpec> const& tables() {
  static std::vector<TableSpec> const all{status_table(), clock_table(),  names_table(),
                                          steps_table(),  epochs_table(), ps_table(),
                                          spans_table(),  memory_table(), memory_breakdown_table(),
                                          device_table(), events_table()};
  return all;
}

}  // namespace stratagem::trace
