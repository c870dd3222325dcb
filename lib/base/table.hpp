#pragma once

#include <string>
#include <vector>

namespace stratagem {

enum class Align { left, right };
enum class TableFormat { text, markdown, csv, latex };

/// Rows of text cells under named columns.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  /// Ends with a newline.
  std::string render(TableFormat format = TableFormat::text) const;

 private:
  std::string render_text() const;
  std::string render_markdown() const;
  std::string render_csv() const;
  std::string render_latex() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace stratagem
