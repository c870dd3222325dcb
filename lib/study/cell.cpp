#include "study/cell.hpp"

#include <array>
#include <functional>
#include <utility>
#include <variant>

#include "base/console/table.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// One column of cells.csv: how it is written and read back.
struct Column {
  std::string title;
  std::function<std::string(CellEntry const&)> get;
  std::function<bool(CellEntry&, std::string const&)> set;  ///< false for a text that it cannot be
};

Column text_column(std::string title, std::string CellEntry::*member) {
  return {std::move(title), [member](CellEntry const& cell) { return cell.*member; },
          [member](CellEntry& cell, std::string const& text) {
            cell.*member = text;
            return true;
          }};
}

template <class Integer>
Column integer_column(std::string title, Integer CellEntry::*member) {
  return {std::move(title),
          [member](CellEntry const& cell) { return std::to_string(cell.*member); },
          [member](CellEntry& cell, std::string const& text) {
            auto const value = parse_integer(text);
            if (value) cell.*member = static_cast<Integer>(*value);
            return value.has_value();
          }};
}

/// Derived from other columns, for people who read the file.
Column ranks_column() {
  return {"ranks", [](CellEntry const& cell) { return std::to_string(cell.ranks()); },
          [](CellEntry const& cell, std::string const& text) {
            return parse_integer(text) == cell.ranks();
          }};
}

std::vector<Column> columns() {
  return {integer_column("index", &CellEntry::index),
          text_column("cell", &CellEntry::name),
          text_column("group", &CellEntry::group),
          text_column("part", &CellEntry::part),
          text_column("model", &CellEntry::model),
          text_column("dataset", &CellEntry::dataset),
          text_column("variant", &CellEntry::variant),
          text_column("strategy", &CellEntry::strategy),
          integer_column("workers", &CellEntry::workers),
          integer_column("servers", &CellEntry::servers),
          ranks_column(),
          integer_column("seed", &CellEntry::seed),
          integer_column("global_batch", &CellEntry::global_batch),
          integer_column("input_size", &CellEntry::input_size),
          text_column("precision", &CellEntry::precision),
          integer_column("epochs", &CellEntry::epochs),
          integer_column("max_steps", &CellEntry::max_steps),
          integer_column("threads", &CellEntry::threads),
          text_column("settings", &CellEntry::settings)};
}

[[noreturn]] void refuse(std::filesystem::path const& path, std::size_t line,
                         std::string const& why) {
  throw Error(ExitCode::bad_data, str(path.string(), ", line ", line, ", is not what sweep writes"),
              why, "take another study directory, or the version that wrote this one");
}

std::vector<std::string> titles() {
  std::vector<std::string> titles;
  for (auto const& column : columns()) titles.push_back(column.title);
  return titles;
}

}  // namespace

void describe(CellEntry& cell, RunConfig const& config) {
  cell.model = config.model.name;
  cell.dataset = config.data.dataset;
  cell.strategy = name_of(config.strategy);
  cell.servers = servers_of(config.strategy);
  cell.seed = config.run.seed;
  cell.global_batch = config.data.global_batch_for(cell.workers);
  cell.input_size = config.data.input_size;
  cell.precision = precision_names.at(static_cast<std::size_t>(config.precision.compute));
  cell.epochs = config.run.epochs;
  cell.max_steps = config.run.max_steps;
  cell.threads = config.run.threads;
}

std::string cells_csv(std::vector<CellEntry> const& cells) {
  auto const all = columns();
  std::vector<Table::Column> heads;
  for (auto const& column : all) heads.push_back({column.title, Align::left});
  Table table(std::move(heads));
  for (auto const& cell : cells) {
    std::vector<std::string> row;
    for (auto const& column : all) row.push_back(column.get(cell));
    table.add_row(std::move(row));
  }
  return table.render(TableFormat::csv);
}

std::vector<CellEntry> read_cells(std::filesystem::path const& path) {
  auto const lines = split(read_text(path, ExitCode::bad_data), '\n');
  auto const all = columns();
  if (lines.empty() || csv_fields(lines.front()) != titles())
    refuse(path, 1, "its columns are not " + join(titles(), ","));
  std::vector<CellEntry> cells;
  for (std::size_t i = 1; i < lines.size() && !lines[i].empty(); ++i) {
    auto const fields = csv_fields(lines[i]);
    if (fields.size() != all.size()) refuse(path, i + 1, str(fields.size(), " columns"));
    CellEntry cell;
    for (std::size_t c = 0; c < all.size(); ++c)
      if (!all[c].set(cell, fields[c]))
        refuse(path, i + 1, "\"" + fields[c] + "\" as " + all[c].title);
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<std::string> csv_fields(std::string const& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char const c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace stratagem
