#include "model/safetensors.hpp"

#include <cstring>

#include <ATen/ATen.h>

#include "fuzz/input_file.hpp"

using namespace stratagem;

namespace {

void read(test::InputFile const& file) {
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    std::size_t bytes = 0;
    read_safetensors(file.path(), [&](std::string const&, at::Tensor const& tensor) {
      bytes += tensor.nbytes();
    });
    test::require(bytes < std::filesystem::file_size(file.path()));
  });
}

/// With the length that the header has in fact, which a mutation of the text would break: all up to
/// the last brace is the header, what follows is data.
std::string framed(std::string const& text) {
  std::uint64_t const length = text.rfind('}') + 1;  // npos + 1 is 0
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  return frame + text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::InputFile const file;
  file.hold({data, size});
  read(file);
  file.hold(framed({reinterpret_cast<char const*>(data), size}));
  read(file);
  return 0;
}
