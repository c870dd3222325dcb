#include <dlfcn.h>
#include <unistd.h>

#include "h5/sample.hpp"

namespace stratagem::h5 {
namespace {

struct Write {
  std::uintmax_t offset, bytes;
};

/// Where HDF5's writes are kept while a test wants them.
std::vector<Write>* recorded = nullptr;

}  // namespace
}  // namespace stratagem::h5

/// Stands before libc's for every library of this process.
extern "C" ssize_t pwrite(int file, void const* data, size_t bytes, off_t offset) {
  using Function = ssize_t (*)(int, void const*, size_t, off_t);
  static auto const real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "pwrite"));
  if (stratagem::h5::recorded != nullptr)
    stratagem::h5::recorded->push_back({static_cast<std::uintmax_t>(offset), bytes});
  return real(file, data, bytes, offset);
}

namespace stratagem::h5 {
namespace {

constexpr std::uintmax_t page_bytes = 4096;

bool crosses_a_page(Write const& write) {
  return write.offset / page_bytes != (write.offset + write.bytes - 1) / page_bytes;
}

class TornWrites : public SampleTest {
 protected:
  void TearDown() override { recorded = nullptr; }

  /// Of a table that is appended to and flushed as a trace is, once readers may look at it.
  std::vector<Write> writes_of(std::int64_t flushes, std::int64_t rows_each) const {
    FileWriter file(scratch_ / "x.h5", FileWriter::Mode::streaming);
    auto table = file.create_table(sample());
    file.start_streaming();
    std::vector<Write> writes;
    recorded = &writes;
    for (std::int64_t i = 0; i < flushes; ++i) {
      table.append(rows(i * rows_each, rows_each));
      table.flush();
      file.flush(false);
    }
    table.close();
    file.close();
    recorded = nullptr;
    return writes;
  }
};

/// A kill cuts a write short at a page: what HDF5 writes of its own would then have a checksum that
/// does not fit, and with it a whole column would be lost.
TEST_F(TornWrites, NothingButRowsCrossesAPage) {
  auto const writes = writes_of(500, 400);
  ASSERT_GT(writes.size(), 3000U);
  std::size_t rows = 0;
  for (auto const& write : writes) {
    if (!crosses_a_page(write)) continue;
    EXPECT_EQ(write.offset % page_bytes, 0U) << write.bytes << " bytes at " << write.offset;
    EXPECT_EQ(write.bytes, 256 * text_width) << "at " << write.offset;
    ++rows;
  }
  EXPECT_GT(rows, 700U) << "chunks of text cross pages, and are seen to";
  expect_rows(FileReader(scratch_ / "x.h5").read_table(sample()), 500 * 400);
}

}  // namespace
}  // namespace stratagem::h5
