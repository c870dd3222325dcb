#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include "fuzz/input_file.hpp"
#include "model/exported/exported_model.hpp"
#include "model/fused/batch_norm.hpp"
#include "model/landing.hpp"

using namespace stratagem;

namespace stratagem {

// No pass is run here, so what only passes need is not linked.

at::Tensor keep_mask(Context const&, std::string const&, std::int64_t, std::int64_t, double,
                     at::Device) {
  std::abort();
}

at::Tensor batch_norm(at::Tensor const&, at::Tensor const&, BatchNormOf const&, bool, bool) {
  std::abort();
}

void replace(std::vector<at::Tensor> const&, std::vector<at::Tensor> const&) {
  std::abort();
}

}  // namespace stratagem

namespace {

constexpr char graph[] = "models/model.json";

/// The parameters and buffers of whatever the file describes: no more than it holds.
void read(std::filesystem::path const& path) {
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    std::size_t bytes = 0;
    for (auto const& [_, tensor] : exported_state(path)) bytes += tensor.nbytes();
    test::require(bytes <= std::filesystem::file_size(path));
    make_exported_model({.name = "fuzzed", .file = path.string(), .num_classes = 0}, {.size = 0});
  });
}

/// A whole archive with this graph, which a mutation of an archive would hardly reach: its checksum
/// would be wrong.
void write_archive(std::filesystem::path const& path, std::span<std::uint8_t const> json) {
  constexpr char table[] = R"({"config": {}})";
  caffe2::serialize::PyTorchStreamWriter writer(path.string());
  writer.writeRecord(graph, json.data(), json.size());
  for (auto const* kind : {"weights", "constants"})
    writer.writeRecord(std::string("data/") + kind + "/model_" + kind + "_config.json", table,
                       sizeof table - 1);
  writer.writeEndOfFile();
}

}  // namespace

/// LibTorch's reader leaks a little of an archive that it refuses.
extern "C" char const* __lsan_default_suppressions() {
  return "leak:mz_zip_reader";
}

/// An archive, or else the JSON of a graph.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::InputFile const file;
  if (size > 0 && data[0] == '{') {
    write_archive(file.path(), {data, size});
  } else {
    file.hold({data, size});
  }
  read(file.path());
  return 0;
}
