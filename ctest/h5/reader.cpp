#include "h5/reader.hpp"

#include <hdf5.h>
#include <sys/stat.h>

#include "h5/handle.hpp"
#include "h5/sample.hpp"
#include "support/child.hpp"

namespace stratagem::h5 {
namespace {

class Reader : public SampleTest {
 protected:
  ExitCode code_of_reading(TableSpec const& spec) const {
    try {
      FileReader(scratch_ / "x.h5").read_table(spec);
    } catch (Error const& error) {
      return error.code();
    }
    return ExitCode::done;
  }
};

TEST_F(Reader, FindsItsWay) {
  write_sample(scratch_ / "x.h5", FileWriter::Mode::archive, 3);
  FileReader const file(scratch_ / "x.h5");
  EXPECT_TRUE(file.has("/"));
  EXPECT_TRUE(file.has("/group/table/count"));
  EXPECT_FALSE(file.has("/group/none"));
  EXPECT_FALSE(file.has("/none/table"));
  EXPECT_EQ(file.children("/group"), std::vector<std::string>{"table"});
  EXPECT_EQ(file.attribute("/", "title"), AttributeValue(std::string("sample")));
  EXPECT_EQ(file.attribute("/", "none"), std::nullopt);
  EXPECT_EQ(file.attribute("/none", "title"), std::nullopt);
}

TEST_F(Reader, RefusesWhatTheSchemaDoesNotSay) {
  write_sample(scratch_ / "x.h5", FileWriter::Mode::archive, 3);
  auto spec = sample();
  EXPECT_EQ(code_of_reading(spec), ExitCode::done);
  spec.columns[0].type = ColumnType::real;
  EXPECT_EQ(code_of_reading(spec), ExitCode::bad_data);
  spec.columns[0] = {"none", ColumnType::integer, "", ""};
  EXPECT_EQ(code_of_reading(spec), ExitCode::bad_data);
}

TEST_F(Reader, ReadsTextsOfAnyLengthAsEarlierVersionsWroteThem) {
  write_sample(scratch_ / "x.h5", FileWriter::Mode::archive, 3);
  {
    Handle const file(H5Fopen((scratch_ / "x.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    Handle const type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
    H5Tset_size(type.get(), H5T_VARIABLE);
    Handle const attribute(
        H5Acreate2(file.get(), "old", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
    char const* text = "as it was";
    ASSERT_GE(H5Awrite(attribute.get(), type.get(), &text), 0);
  }
  EXPECT_EQ(FileReader(scratch_ / "x.h5").attribute("/", "old"),
            AttributeValue(std::string("as it was")));
}

TEST_F(Reader, APipeIsRefusedWithoutWaitingForItsWriter) {
  ASSERT_EQ(::mkfifo((scratch_ / "x.h5").c_str(), 0600), 0);
  EXPECT_EQ(code_of_reading(sample()), ExitCode::io);
}

TEST_F(Reader, CutsColumnsToTheShortest) {
  FileWriter file(scratch_ / "x.h5", FileWriter::Mode::archive);
  for (auto [path, count] : {std::pair{"/a", 5}, {"/b", 2}}) {
    auto table = file.create_table({path, {{"x", ColumnType::integer, "1", ""}}});
    table.append({std::get<Integers>(rows(0, count)[0])});
    table.close();
  }
  file.close();
  // Two tables of unlike length, read as if they were one whose writer was killed between columns.
  auto const table =
      FileReader(scratch_ / "x.h5")
          .read_table(
              {"", {{"a/x", ColumnType::integer, "", ""}, {"b/x", ColumnType::integer, "", ""}}});
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.integers("a/x"), (Integers{0, 1}));
}

TEST_F(Reader, RowsThatNobodyWroteAreRefused) {
  {
    auto const file = owned(
        H5Fcreate((scratch_ / "x.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "file");
    auto const group =
        owned(H5Gcreate2(file.get(), "/t", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "group");
    hsize_t const rows = 100'000'000, chunk = 256;
    auto const space = owned(H5Screate_simple(1, &rows, nullptr), "space");
    auto const properties = owned(H5Pcreate(H5P_DATASET_CREATE), "properties");
    check(H5Pset_chunk(properties.get(), 1, &chunk), "chunk");
    owned(H5Dcreate2(group.get(), "x", H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, properties.get(),
                     H5P_DEFAULT),
          "dataset");
  }
  EXPECT_LT(std::filesystem::file_size(scratch_ / "x.h5"), 10'000U);
  EXPECT_EQ(code_of_reading({"/t", {{"x", ColumnType::integer, "1", ""}}}), ExitCode::bad_data);
}

TEST_F(Reader, SeesAFileGrowWhileItIsWritten) {
  test::Gate written, go_on;
  test::Child writer([&] {
    FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
    auto table = file.create_table(sample());
    file.start_streaming();
    for (std::int64_t first : {0, 300}) {
      table.append(rows(first, 300));
      table.flush();
      file.flush(false);
      written.open();
      go_on.pass();
    }
    table.close();
    file.close();
    return 0;
  });
  for (std::int64_t count : {300, 600}) {
    written.pass();
    FileReader const file(scratch_ / "x.h5");
    EXPECT_FALSE(file.closed_cleanly());
    expect_rows(file.read_table(sample()), count);
    go_on.open();
  }
  EXPECT_EQ(writer.wait(), 0);
  FileReader const file(scratch_ / "x.h5");
  EXPECT_TRUE(file.closed_cleanly());
  expect_rows(file.read_table(sample()), 600);
}

TEST_F(Reader, ReadsWhatAKilledWriterFlushed) {
  test::Gate written;
  test::Child writer([&] {
    FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
    auto table = file.create_table(sample());
    file.start_streaming();
    table.append(rows(0, 1000));
    table.flush();
    file.flush(false);
    table.append(rows(1000, 10));  // lost with the process
    written.open();
    ::pause();
    return 0;
  });
  written.pass();
  writer.kill();
  EXPECT_EQ(writer.wait(), -SIGKILL);
  FileReader const file(scratch_ / "x.h5");
  EXPECT_FALSE(file.closed_cleanly());
  expect_rows(file.read_table(sample()), 1000);
}

}  // namespace
}  // namespace stratagem::h5
