#include "trace/rank_trace.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem::trace {
namespace {

std::string text_attribute(h5::FileReader const& file, std::string const& name) {
  auto const value = file.attribute("/", name);
  auto const* text = value ? std::get_if<std::string>(&*value) : nullptr;
  return text != nullptr ? *text : "";
}

void require_schema(h5::FileReader const& file, std::filesystem::path const& path,
                    std::string_view schema) {
  auto const name = text_attribute(file, "schema_name");
  if (name != schema)
    throw Error(ExitCode::bad_data, path.string() + " is not a trace of this program",
                str("its schema_name is \"", name, "\", expected \"", schema, "\""));
  auto const version = file.attribute("/", "schema_version");
  auto const* number = version ? std::get_if<std::int64_t>(&*version) : nullptr;
  if (number == nullptr || *number != schema_version)
    throw Error(ExitCode::bad_data, path.string() + " has another schema version",
                str("it is ", number != nullptr ? str(*number) : "missing", ", this program reads ",
                    schema_version),
                "read it with the version of stratagem that wrote it");
}

RankTrace read_group(h5::FileReader const& file, std::filesystem::path const& path,
                     std::string const& group) {
  RankTrace trace{.path = path, .group = group, .closed_cleanly = file.closed_cleanly()};
  trace.provenance = file.attributes(group + "/provenance");
  trace.process = file.attributes(group + "/process");
  for (auto spec : tables()) {
    auto const name = spec.path;
    spec.path = group + spec.path;
    trace.tables[name] = file.read_table(spec);
  }
  auto const& status = trace.table(status_table());
  if (status.rows > 0) {
    trace.status = static_cast<Status>(status.integers("status").back());
    trace.dropped = status.integers("dropped").back();
  }
  return trace;
}

}  // namespace

int RankTrace::rank() const {
  auto const found = process.find("rank");
  auto const* rank = found != process.end() ? std::get_if<std::int64_t>(&found->second) : nullptr;
  if (rank == nullptr || !std::in_range<int>(*rank) || *rank < 0)
    throw Error(ExitCode::bad_data, path.string() + ": /process has no rank");
  return static_cast<int>(*rank);
}

RankTrace read_rank_trace(std::filesystem::path const& path) {
  h5::FileReader const file(path);
  require_schema(file, path, schema_name);
  return read_group(file, path, "");
}

std::string rank_label(int rank) {
  auto const digits = std::to_string(rank);
  return "rank-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

std::vector<RankTrace> read_collected_trace(std::filesystem::path const& path) {
  h5::FileReader const file(path);
  require_schema(file, path, collected_schema_name);
  std::vector<RankTrace> traces;
  for (auto const& child : file.children("/"))
    if (child.starts_with("rank-")) {
      traces.push_back(read_group(file, path, "/" + child));
      auto const closed = file.attribute("/" + child, "closed_cleanly");
      traces.back().closed_cleanly = closed && std::get<std::int64_t>(*closed) != 0;
    }
  return traces;
}

std::string schema_of(std::filesystem::path const& path) {
  return text_attribute(h5::FileReader(path), "schema_name");
}

}  // namespace stratagem::trace
