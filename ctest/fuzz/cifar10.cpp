#include "data/cifar/cifar10.hpp"

#include <fstream>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "fuzz/input_file.hpp"

using namespace stratagem;

namespace {

/// One training file and the test file are the input, the other four hold a good record each.
class Folder {
 public:
  Folder() {
    for (int i = 1; i <= 5; ++i) {
      auto const name = folder_ / str("data_batch_", i, ".bin");
      if (i == 2) {
        input_.appear_as(name);
      } else {
        std::ofstream(name, std::ios::binary) << std::string(1 + 3 * 32 * 32, '\x07');
      }
    }
    input_.appear_as(folder_ / "test_batch.bin");
  }
  std::filesystem::path const& path() const { return folder_.path(); }
  test::InputFile const& input() const { return input_; }

 private:
  test::Scratch folder_;
  test::InputFile input_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static Folder const folder;
  folder.input().hold({data, size});
  test::reads_or_refuses(ExitCode::bad_data, [] {
    auto const dataset = read_cifar10(folder.path());
    test::require(dataset.train.size() == 5);
    test::require(dataset.test.labels.max().item<std::int64_t>() < dataset.classes);
  });
  return 0;
}
