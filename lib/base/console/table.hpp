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
  /// A line that explains the numbers: below the table, in LaTeX a comment above it. Not in CSV.
  void set_note(std::string note) { note_ = std::move(note); }

  /// Ends with a newline.
  std::string render(TableFormat format = TableFormat::text) const;
  /// As text for a terminal of so many columns; 0: any width. If the table is too wide, titles and
  /// texts continue in further lines, a text that repeats the row above becomes "as above", and
  /// columns that still do not fit next to the first one follow in tables of their own.
  std::string render_within(int columns) const;

 private:
  /// Which columns are shown, and how many characters each has.
  struct Layout {
    std::vector<std::size_t> shown, widths;
  };

  std::size_t natural_width(std::size_t column) const;
  /// The least width of a column.
  std::size_t least_width(std::size_t column) const;
  /// Natural widths; if they do not fit, the widest columns are made narrower, as far as possible.
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
