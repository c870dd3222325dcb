#include "config/parse.hpp"
#include "config/print.hpp"
#include "fuzz/input_file.hpp"

using namespace stratagem;

namespace {

KnownNames const& names() {
  static KnownNames const known{{"mnist", "cifar10", "synthetic-digits"}, {"lenet", "vgg16"}};
  return known;
}

std::optional<std::string> variable(std::string const& name) {
  if (name == "STRATAGEM_DATA") return "/data/${NAME}";
  if (name == "NUMBER") return "7";
  return std::nullopt;
}

std::optional<std::string> none(std::string const&) {
  return std::nullopt;
}

}  // namespace

/// A configuration file: document, keys, values and rules. What was taken is printed as
/// --print-config does, and read back as the same, whatever the environment.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const text(reinterpret_cast<char const*>(data), size);
  test::reads_or_refuses(ExitCode::usage, [&] {
    auto const printed = print_config(parse_config(text, "c.yaml", {}, names(), variable));
    test::require(print_config(parse_config(printed, "p.yaml", {}, names(), none)) == printed);
  });
  return 0;
}
