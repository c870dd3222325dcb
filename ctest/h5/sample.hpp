#pragma once

#include <gtest/gtest.h>

#include "h5/error.hpp"
#include "h5/reader.hpp"
#include "h5/writer.hpp"
#include "support/scratch.hpp"

namespace stratagem::h5 {

/// A table with a column of every type, and a folder to write it in.
class SampleTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { initialise_library(); }

  static TableSpec sample() {
    return {"/group/table",
            {{"count", ColumnType::integer, "1", "a count"},
             {"size", ColumnType::real, "B", "a size"},
             {"name", ColumnType::text, "", "a name"}}};
  }

  /// Rows `first` to `first + count - 1`, each a function of its number.
  static std::vector<ColumnData> rows(std::int64_t first, std::int64_t count) {
    Integers integers;
    Reals reals;
    Texts texts;
    for (auto i = first; i < first + count; ++i) {
      integers.push_back(i);
      reals.push_back(0.5 * static_cast<double>(i));
      texts.push_back("row " + std::to_string(i));
    }
    return {integers, reals, texts};
  }

  static void expect_rows(TableData const& table, std::int64_t count) {
    ASSERT_EQ(table.rows, count);
    auto const expected = rows(0, count);
    EXPECT_EQ(table.integers("count"), std::get<Integers>(expected[0]));
    EXPECT_EQ(table.reals("size"), std::get<Reals>(expected[1]));
    EXPECT_EQ(table.texts("name"), std::get<Texts>(expected[2]));
  }

  void write_sample(std::filesystem::path const& path, FileWriter::Mode mode,
                    std::int64_t count) const {
    FileWriter file(path, mode);
    file.set_attribute("/", "title", std::string("sample"));
    auto table = file.create_table(sample());
    if (mode == FileWriter::Mode::streaming) file.start_streaming();
    table.append(rows(0, count));
    table.close();
    file.close();
  }

  test::Scratch const scratch_;
};

}  // namespace stratagem::h5
