#include <nlohmann/json.hpp>

#include "base/hash/hash.hpp"
#include "fuzz/input_file.hpp"
#include "run_files/record.hpp"

using namespace stratagem;

namespace {

/// The record as it was read is one that can be written and read again.
void read(test::InputFile const& file) {
  CheckpointRecord record;
  bool const taken = test::reads_or_refuses(ExitCode::checkpoint, [&] {
    record = read_checkpoint_record(file.path());
    for (auto const& part : record.files)
      for (auto const& [name, _] : part.tensors) static_cast<void>(StateName::parse(name));
  });
  if (!taken) return;
  auto const text = to_json(record);
  file.hold(text);
  test::require(to_json(read_checkpoint_record(file.path())) == text);
}

/// A manifest whose digest fits, which a mutation of the text would break.
std::string sealed(std::string const& text) {
  auto const content = nlohmann::json::parse(text, nullptr, false);
  if (content.is_discarded()) return text;
  nlohmann::json const document{{"schema", CheckpointRecord::schema},
                                {"digest", Hash().add(content.dump()).hex()},
                                {"content", content}};
  return document.dump();
}

}  // namespace

/// The manifest of a checkpoint, as it is and as the content of a sound one.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static test::InputFile const file;
  std::string const text(reinterpret_cast<char const*>(data), size);
  file.hold(text);
  read(file);
  file.hold(sealed(text));
  read(file);
  return 0;
}
