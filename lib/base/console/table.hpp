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
  /// A line that says what the numbers are: beneath the table, in LaTeX a comment above it. CSV has
  /// none.
  void set_note(std::string note) { note_ = std::move(note); }

  /// Ends with a newline.
  std::string render(TableFormat format = TableFormat::text) const;
  /// As text for a terminal of so many columns; 0 is as wide as it becomes. Where it is too wide,
  /// titles and texts go on in further lines, a text that the row above has, too, is "as above",
  /// and what still does not fit beside the first column follows in tables of its own.
  std::string render_within(int columns) const;

 private:
  /// Which columns, and how many characters each.
  struct Layout {
    std::vector<std::size_t> shown, widths;
  };

  std::size_t natural_width(std::size_t column) const;
  /// What it cannot do without.
  std::size_t least_width(std::size_t column) const;
  /// As wide as they are, the widest made narrower until they fit, if they can.
  Layout fitted(std::vector<std::size_t> shown, std::size_t room) const;
  std::string render_lines(Layout const& layout) const;
  std::string render_markdown() const;
  std::string render_csv() const;
  std::string render_latex() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::string note_;
};

}  // namespace stratagem
