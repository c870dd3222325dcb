#include "support/exported_files.hpp"

#include <caffe2/serialize/inline_container.h>

namespace stratagem::test {

std::filesystem::path tiny_exported(std::string const& torch) {
  return std::filesystem::path(STRATAGEM_CTEST) / "model/files" / ("tiny-" + torch + ".pt2");
}

void write_changed(std::filesystem::path const& target, std::function<void(Records&)> const& change,
                   std::string const& torch) {
  Records records;
  caffe2::serialize::PyTorchStreamReader reader(tiny_exported(torch).string());
  for (auto const& name : reader.getAllRecords()) {
    if (name.starts_with(".data/") || name == "version") continue;
    auto const [data, size] = reader.getRecord(name);
    records[name] = std::string(static_cast<char const*>(data.get()), size);
  }
  change(records);
  caffe2::serialize::PyTorchStreamWriter writer(target.string());
  for (auto const& [name, content] : records)
    writer.writeRecord(name, content.data(), content.size());
  writer.writeEndOfFile();
}

}  // namespace stratagem::test
