#include "config/study_file.hpp"
#include "fuzz/input_file.hpp"

using namespace stratagem;

/// A study: the other kind of YAML file.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const text(reinterpret_cast<char const*>(data), size);
  test::reads_or_refuses(ExitCode::usage, [&] {
    Problems problems;
    static_cast<void>(read_study_file(text, "study.yaml", problems));
    if (!problems.empty()) problems.raise();
  });
  return 0;
}
