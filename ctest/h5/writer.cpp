#include "h5/writer.hpp"

#include <cmath>
#include <csignal>

#include <sys/resource.h>

#include "base/files/file.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "h5/sample.hpp"
#include "support/child.hpp"

namespace stratagem::h5 {
namespace {

class Writer : public SampleTest {};

TEST_F(Writer, RoundTripInBothModes) {
  for (auto mode : {FileWriter::Mode::streaming, FileWriter::Mode::archive})
    for (std::int64_t count : {0, 1, 255, 256, 257, 5000}) {
      auto const path = scratch_ / "x.h5";
      std::filesystem::remove(path);
      write_sample(path, mode, count);
      FileReader const file(path);
      EXPECT_TRUE(file.closed_cleanly());
      expect_rows(file.read_table(sample()), count);
    }
}

TEST_F(Writer, AppendsAddUp) {
  FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
  auto table = file.create_table(sample());
  file.start_streaming();
  for (std::int64_t first = 0; first < 700; first += 7) table.append(rows(first, 7));
  EXPECT_EQ(table.rows(), 700);
  table.close();
  file.close();
  expect_rows(FileReader(scratch_ / "x.h5").read_table(sample()), 700);
}

TEST_F(Writer, AttributesKeepTypeAndValue) {
  std::string const text = "several\nlines, µ";
  {
    FileWriter file(scratch_ / "x.h5", FileWriter::Mode::archive);
    file.create_group("/a/b");
    file.set_attribute("/a/b", "integer", std::int64_t{-(1LL << 62)});
    file.set_attribute("/a/b", "real", 0.1);
    file.set_attribute("/a/b", "text", text);
    file.set_attribute("/a/b", "empty", std::string());
    file.close();
  }
  std::map<std::string, AttributeValue> const expected{{"integer", std::int64_t{-(1LL << 62)}},
                                                       {"real", 0.1},
                                                       {"text", text},
                                                       {"empty", std::string()}};
  EXPECT_EQ(FileReader(scratch_ / "x.h5").attributes("/a/b"), expected);
}

/// HDF5 keeps texts of any length in a heap without a checksum, and damage there crashes it.
TEST_F(Writer, NoTextLiesInTheGlobalHeap) {
  for (auto mode : {FileWriter::Mode::streaming, FileWriter::Mode::archive}) {
    auto const path = scratch_ / "x.h5";
    std::filesystem::remove(path);
    {
      FileWriter file(path, mode);
      file.create_group("/a");
      for (auto const size : {0, 1, 100, 5000, 100000})  // beyond what an object's header holds
        file.set_attribute("/a", std::to_string(size),
                           std::string(static_cast<std::size_t>(size), 'x'));
      file.close();
    }
    EXPECT_EQ(read_text(path, ExitCode::io).find("GCOL"), std::string::npos);
    for (auto const& [name, value] : FileReader(path).attributes("/a"))
      EXPECT_EQ(std::get<std::string>(value).size(), std::stoul(name));
  }
}

/// What h5py and others ask before they open a file without being told that it may grow.
TEST_F(Writer, OnlyAnOpenFileIsMarkedAsOne) {
  auto const marks = [&] { return read_text(scratch_ / "x.h5", ExitCode::io).at(11); };
  FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
  auto table = file.create_table(sample());
  file.start_streaming();
  table.append(rows(0, 3));
  file.flush(false);
  EXPECT_NE(marks(), 0);
  table.close();
  file.close();
  EXPECT_EQ(marks(), 0);
}

TEST_F(Writer, MemoryDoesNotGrowWithTheRows) {
  TableSpec spec{"/wide", {}};
  for (int i = 0; i < 40; ++i)
    spec.columns.push_back({str("c", i), ColumnType::integer, "1", "a number"});
  FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
  auto table = file.create_table(spec);
  file.start_streaming();
  std::vector<ColumnData> const some(spec.columns.size(), Integers(64, 7));
  auto const append = [&](int times) {
    for (int i = 0; i < times; ++i) table.append(some);
    file.flush(false);
  };
  append(100);
  auto const before = resident_bytes();
  append(600);
  EXPECT_LT(resident_bytes() - before, 4 << 20) << "of 12 MiB that were written";
  table.close();
  file.close();
}

TEST_F(Writer, EveryColumnSaysUnitAndMeaning) {
  write_sample(scratch_ / "x.h5", FileWriter::Mode::streaming, 1);
  FileReader const file(scratch_ / "x.h5");
  for (auto const& column : sample().columns) {
    auto const path = sample().path + "/" + column.name;
    EXPECT_EQ(file.attribute(path, "unit"), AttributeValue(column.unit));
    EXPECT_EQ(file.attribute(path, "long_name"), AttributeValue(column.long_name));
  }
}

TEST_F(Writer, LongTextsAreCutUnknownNumbersKept) {
  FileWriter file(scratch_ / "x.h5", FileWriter::Mode::archive);
  TableSpec const spec{"/t",
                       {{"text", ColumnType::text, "", ""}, {"real", ColumnType::real, "", ""}}};
  auto table = file.create_table(spec);
  std::string const long_text(text_width + 10, 'x');
  table.append({Texts{long_text}, Reals{std::nan("")}});
  table.close();
  file.close();
  auto const read = FileReader(scratch_ / "x.h5").read_table(spec);
  EXPECT_EQ(read.texts("text").front(), long_text.substr(0, text_width));
  EXPECT_TRUE(std::isnan(read.reals("real").front()));
}

TEST_F(Writer, NeverOverwritesAndSaysWhere) {
  write_sample(scratch_ / "x.h5", FileWriter::Mode::archive, 3);
  for (auto const& path : {scratch_ / "x.h5", scratch_ / "none" / "x.h5"}) try {
      FileWriter const file(path, FileWriter::Mode::archive);
      FAIL() << path;
    } catch (Hdf5Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::io);
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    }
  expect_rows(FileReader(scratch_ / "x.h5").read_table(sample()), 3);
}

TEST_F(Writer, RowsThatDoNotFitTheSpecAreABug) {
  FileWriter file(scratch_ / "x.h5", FileWriter::Mode::archive);
  auto table = file.create_table(sample());
  EXPECT_THROW(table.append({Integers{1}, Reals{1}}), std::logic_error);
  EXPECT_THROW(table.append({Integers{1}, Reals{1, 2}, Texts{""}}), std::logic_error);
  EXPECT_THROW(table.append({Integers{1}, Integers{1}, Texts{""}}), std::logic_error);
}

TEST_F(Writer, AFullDiskIsAnErrorNotACrash) {
  test::Child child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
    auto table = file.create_table(sample());
    file.start_streaming();
    file.flush(false);
    rlimit const limit{std::filesystem::file_size(scratch_ / "x.h5") + 4096, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      table.append(rows(0, 10'000));
      table.flush();
      table.close();
      file.close();
    } catch (Hdf5Error const& error) {
      return to_int(error.code());
    }
    return 0;
  });
  EXPECT_EQ(child.wait(), to_int(ExitCode::io));
}

}  // namespace
}  // namespace stratagem::h5
