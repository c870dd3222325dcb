#include <vector>

#include <ATen/ATen.h>
#include <zlib.h>

#include "data/idx/idx.hpp"
#include "fuzz/input_file.hpp"

using namespace stratagem;

namespace {

constexpr std::size_t dimensions = 1;

/// The input under a name by which it is taken for compressed.
class PackedFile {
 public:
  PackedFile() { file_.appear_as(path()); }
  std::filesystem::path path() const { return folder_ / "labels.gz"; }
  test::InputFile const& file() const { return file_; }

 private:
  test::Scratch folder_;
  test::InputFile file_;
};

std::vector<std::uint8_t> packed(std::uint8_t const* data, std::size_t size) {
  z_stream stream{};
  constexpr int fastest = 1, gzip = 15 + 16, memory = 8;
  test::require(deflateInit2(&stream, fastest, Z_DEFLATED, gzip, memory, Z_DEFAULT_STRATEGY) ==
                Z_OK);
  std::vector<std::uint8_t> out(deflateBound(&stream, size));
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  test::require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

/// A compressed IDX file. Its checksum keeps a mutation from passing, so that the input is also
/// taken for what a sound file holds.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static PackedFile const input;
  auto const read = [] { static_cast<void>(read_idx(input.path(), dimensions, "")); };
  input.file().hold({data, size});
  test::reads_or_refuses(ExitCode::bad_data, read);
  input.file().hold(packed(data, size));
  test::reads_or_refuses(ExitCode::bad_data, read);
  return 0;
}
