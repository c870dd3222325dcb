#include "data/idx/idx.hpp"

#include <ATen/ATen.h>

#include "fuzz/input_file.hpp"

using namespace stratagem;

/// An IDX file, of as many dimensions as it claims.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::InputFile const file;
  file.hold({data, size});
  std::size_t const dimensions = size > 3 && data[3] >= 1 && data[3] <= 4 ? data[3] : 1;
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    auto const read = read_idx(file.path(), dimensions, "");
    test::require(static_cast<std::size_t>(read.values.numel()) + 4 + 4 * dimensions == size);
  });
  return 0;
}
