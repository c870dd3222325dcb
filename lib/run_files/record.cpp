#include "run_files/record.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "optim/optim_config.hpp"
#include "strategy/strategy_config.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uintmax_t largest_record = 64 << 20;
constexpr int deepest_record = 8;  // what walks a value does so by recursion

[[noreturn]] void reject(fs::path const& path, std::string const& why) {
  throw Error(ExitCode::checkpoint, str("not a usable checkpoint: ", path.string()), why,
              "take another, or remove it");
}

json to_document(CheckpointFile const& file) {
  json tensors = json::object();
  for (auto const& [name, tensor] : file.tensors)
    tensors[name] = {{"type", tensor.type}, {"shape", tensor.shape}, {"digest", tensor.digest}};
  return {{"name", file.name}, {"bytes", file.bytes}, {"tensors", tensors}};
}

/// A count; json would cast fractions, negative and larger numbers.
template <class Integer>
Integer count(json const& value) {
  auto const number = value.is_number_unsigned() ? value.get<std::uint64_t>()
                                                 : std::numeric_limits<std::uint64_t>::max();
  if (!std::in_range<Integer>(number)) throw std::out_of_range("a number is none of its kind");
  return static_cast<Integer>(number);
}

/// Of no more elements than can be counted.
std::vector<std::int64_t> shape_from(json const& list) {
  if (!list.is_array()) throw std::out_of_range("a shape is no list");
  std::vector<std::int64_t> shape;
  std::int64_t numel = 1;
  for (auto const& item : list) {
    shape.push_back(count<std::int64_t>(item));
    if (__builtin_mul_overflow(numel, std::max<std::int64_t>(shape.back(), 1), &numel))
      throw std::out_of_range("a shape has too many elements");
  }
  return shape;
}

CheckpointFile file_from(json const& document) {
  CheckpointFile file{.name = document.at("name").get<std::string>(),
                      .bytes = count<std::int64_t>(document.at("bytes"))};
  for (auto const& [name, tensor] : document.at("tensors").items())
    file.tensors[name] = {tensor.at("type").get<std::string>(), shape_from(tensor.at("shape")),
                          tensor.at("digest").get<std::string>()};
  return file;
}

json to_document(TrainingProgress const& position) {
  auto const& epoch = position.epoch;
  return {{"step", position.step},
          {"train_time_s", position.train_time_s},
          {"wall_time_s", position.wall_time_s},
          {"epoch",
           {{"loss", epoch.loss},
            {"correct", epoch.correct},
            {"samples", epoch.labels},
            {"applied", epoch.applied},
            {"steps", epoch.steps},
            {"time_s", epoch.time_s},
            {"comm_bytes", epoch.comm_bytes},
            {"energy_J", std::isfinite(epoch.energy_J) ? json(epoch.energy_J) : json()}}}};
}

TrainingProgress position_from(json const& document) {
  auto const& epoch = document.at("epoch");
  auto const& energy = epoch.at("energy_J");
  return {.step = count<std::int64_t>(document.at("step")),
          .train_time_s = document.at("train_time_s").get<double>(),
          .wall_time_s = document.value("wall_time_s", 0.0),
          .epoch = {.loss = epoch.at("loss").get<double>(),
                    .correct = count<std::int64_t>(epoch.at("correct")),
                    .labels = count<std::int64_t>(epoch.at("samples")),
                    .applied = count<std::int64_t>(
                        epoch.at(epoch.contains("applied") ? "applied" : "samples")),
                    .steps = count<std::int64_t>(epoch.at("steps")),
                    .time_s = epoch.at("time_s").get<double>(),
                    .comm_bytes = count<std::int64_t>(epoch.at("comm_bytes")),
                    .energy_J = energy.is_null() ? std::nan("") : energy.get<double>()}};
}

CheckpointRecord record_from(json const& content) {
  CheckpointRecord record{.position = position_from(content.at("position")),
                          .saved_wall_ns = count<std::int64_t>(content.at("saved_wall_ns")),
                          .workers = count<int>(content.at("workers")),
                          .facts = content.at("facts").get<std::map<std::string, std::string>>(),
                          .counters = content.at("counters").get<std::map<std::string, double>>()};
  std::int64_t bytes = 0;
  for (auto const& file : content.at("files")) {
    record.files.push_back(file_from(file));
    if (__builtin_add_overflow(bytes, record.files.back().bytes, &bytes))
      throw std::out_of_range("its files have too many bytes");
  }
  return record;
}

std::string digest_of(std::string const& text) {
  return Hash().add(text).hex();
}

}  // namespace

std::string StateName::text() const {
  return is_own() ? str(kind, '/', worker, '/', tensor) : str(kind, '/', tensor);
}

StateName StateName::parse(std::string const& text) {
  std::vector<std::string> kinds{State::parameters};
  for (auto const& kind : known_state_kinds()) kinds.push_back(kind);
  std::ranges::move(own_state_kinds(), std::back_inserter(kinds));
  auto const slash = text.find('/');
  if (slash != std::string::npos) {
    auto const kind = text.substr(0, slash), rest = text.substr(slash + 1);
    bool const is_known = std::ranges::find(kinds, kind) != kinds.end();
    auto const second = rest.find('/');
    auto const worker = parse_integer(rest.substr(0, second));
    if ((is_known || kind == buffers) && second != std::string::npos && worker && *worker >= 0)
      return {kind, rest.substr(second + 1), static_cast<int>(*worker)};
    if (is_known) return {kind, rest};
  }
  kinds.emplace_back(buffers);
  throw Error(ExitCode::checkpoint, str("a checkpoint has a tensor \"", text, "\""),
              str("it is none of ", join(kinds, "/, "), "/"));
}

TensorRecord describe(std::string const& name, at::Tensor const& tensor) {
  auto const bytes = std::span(static_cast<std::byte const*>(tensor.data_ptr()), tensor.nbytes());
  TensorRecord record{at::toString(tensor.scalar_type()), tensor.sizes().vec(), {}};
  Hash hash;
  hash.add(name).add(record.type);
  for (auto const extent : record.shape) hash.add(static_cast<std::uint64_t>(extent));
  record.digest = hash.add(bytes).hex();
  return record;
}

std::int64_t CheckpointRecord::bytes() const {
  std::int64_t sum = 0;
  for (auto const& file : files) sum += file.bytes;
  return sum;
}

std::string to_json(CheckpointFile const& file) {
  return to_document(file).dump();
}

CheckpointFile checkpoint_file_from(std::string const& text) {
  return file_from(json::parse(text));
}

std::string to_json(CheckpointRecord const& record) {
  json files = json::array();
  for (auto const& file : record.files) files.push_back(to_document(file));
  json const content{{"position", to_document(record.position)},
                     {"saved_wall_ns", record.saved_wall_ns},
                     {"workers", record.workers},
                     {"facts", record.facts},
                     {"counters", record.counters},
                     {"files", files}};
  json const document{{"schema", CheckpointRecord::schema},
                      {"digest", digest_of(content.dump())},
                      {"content", content}};
  return document.dump(1) + "\n";
}

CheckpointRecord read_checkpoint_record(fs::path const& path) {
  std::error_code failed;
  auto const size = fs::file_size(path, failed);
  if (failed) reject(path, failed.message());
  if (size > largest_record) reject(path, str("it has ", size, " bytes"));
  auto const shallow = [&](int depth, json::parse_event_t, json const&) {
    if (depth > deepest_record) reject(path, "it has values within values: damaged");
    return true;
  };
  auto const document = json::parse(read_text(path, ExitCode::checkpoint), shallow, false);
  if (!document.is_object())
    reject(path, "it is no JSON object: damaged, or not written to its end");
  try {
    if (auto const& schema = document.at("schema"); schema != CheckpointRecord::schema)
      reject(path, str("it has schema ", schema.dump().substr(0, 20), ", this program reads ",
                       CheckpointRecord::schema));
    auto const& content = document.at("content");
    if (digest_of(content.dump()) != document.at("digest").get<std::string>())
      reject(path, "its digest does not fit its content: damaged");
    return record_from(content);
  } catch (json::exception const& problem) {
    reject(path, str("it is damaged: ", problem.what()));
  } catch (std::out_of_range const& problem) {
    reject(path, str("it is damaged: ", problem.what()));
  }
}

}  // namespace stratagem
