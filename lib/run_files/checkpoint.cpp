#include "run_files/checkpoint.hpp"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/files/free_name.hpp"
#include "base/text.hpp"
#include "run_files/outcome.hpp"
#include "strategy/state/named_tensors.hpp"
#include "strategy/state/state.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-";
constexpr std::string_view passed_over = "passed-over-";
constexpr std::size_t digits = 9;

[[noreturn]] void damaged(fs::path const& path, std::string const& why) {
  throw Error(ExitCode::checkpoint, str("checkpoint file ", path.string(), " is damaged"), why,
              "take another checkpoint, or remove this one");
}

bool is_plain_name(std::string const& name) {
  return !name.empty() && name != ".." && name.find_first_of(std::string("/\0", 2)) == name.npos;
}

}  // namespace

TensorMap average(std::map<std::string, std::map<int, at::Tensor>> const& buffers) {
  TensorMap means;
  for (auto const& [name, by_worker] : buffers) {
    std::vector<at::Tensor> workers;
    for (auto const& [_, tensor] : by_worker) workers.push_back(tensor);
    means.emplace(name, average(workers));
  }
  return means;
}

Checkpoint::Checkpoint(fs::path folder)
    : folder_(std::move(folder)), record_(read_checkpoint_record(folder_ / "manifest.json")) {}

void Checkpoint::read(Visit const& visit) const {
  for (auto const& file : record_.files) read(file, visit);
}

void Checkpoint::read(CheckpointFile const& file, Visit const& visit) const {
  auto const path = folder_ / file.name;
  if (!is_plain_name(file.name)) damaged(folder_ / "manifest.json", "it names another folder");
  std::error_code failed;
  auto const size = fs::file_size(path, failed);
  if (failed) damaged(path, failed.message());
  if (size != static_cast<std::uintmax_t>(file.bytes))
    damaged(path, str("it has ", size, " bytes, ", file.bytes, " were written"));
  std::set<std::string> seen;
  try {
    read_safetensors(path, [&](std::string const& name, at::Tensor const& tensor) {
      auto const wanted = file.tensors.find(name);
      if (wanted == file.tensors.end()) damaged(path, str("tensor ", name, " was never written"));
      if (describe(name, tensor).digest != wanted->second.digest)
        damaged(path, str("tensor ", name, " differs from what was written"));
      seen.insert(name);
      visit(StateName::parse(name), tensor);
    });
  } catch (Error const& problem) {
    if (problem.code() == ExitCode::checkpoint) throw;
    damaged(path, problem.what());
  }
  for (auto const& [name, _] : file.tensors)
    if (!seen.contains(name)) damaged(path, str("tensor ", name, " is missing"));
}

TensorMap Checkpoint::weights() const {
  TensorMap tensors;
  std::map<std::string, std::map<int, at::Tensor>> buffers;
  read([&](StateName const& name, at::Tensor const& tensor) {
    if (name.kind == State::parameters && !name.is_own()) tensors.emplace(name.tensor, tensor);
    if (name.kind == StateName::buffers) buffers[name.tensor].emplace(name.worker, tensor);
  });
  tensors.merge(average(buffers));
  return tensors;
}

std::string Checkpoint::digest_of(TensorMap const& weights) const {
  NamedTensors parameters;
  for (auto const& file : record_.files)
    for (auto const& [text, _] : file.tensors)
      if (auto const name = StateName::parse(text);
          name.kind == State::parameters && !name.is_own())
        parameters.emplace_back(name.tensor, weights.at(name.tensor).contiguous());
  return stratagem::digest_of(parameters);
}

CheckpointFile save_tensors(fs::path const& path, NamedTensors const& tensors) {
  write_safetensors(path, tensors);
  CheckpointFile file{.name = path.filename().string(),
                      .bytes = static_cast<std::int64_t>(fs::file_size(path))};
  for (auto const& [name, tensor] : tensors) file.tensors[name] = describe(name, tensor);
  read_safetensors(path, [&](std::string const& name, at::Tensor const& tensor) {
    if (describe(name, tensor).digest != file.tensors.at(name).digest)
      throw Error(ExitCode::io, str(path.string(), " does not hold what was written"),
                  "tensor " + name + " differs", "check the disk");
  });
  return file;
}

fs::path checkpoint_folder(fs::path const& run_directory) {
  return run_directory / "checkpoint";
}

std::string checkpoint_name(std::int64_t step) {
  auto const number = std::to_string(step);
  return std::string(prefix) + std::string(digits - std::min(digits, number.size()), '0') + number;
}

std::vector<fs::path> checkpoints_of(fs::path const& run_directory) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code none;
  for (auto const& entry : fs::directory_iterator(checkpoint_folder(run_directory), none)) {
    auto const name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (auto const step = parse_integer(name.substr(prefix.size())))
      found.emplace_back(*step, entry.path());
  }
  std::ranges::sort(found, std::greater());
  std::vector<fs::path> paths;
  for (auto& [_, path] : found) paths.push_back(std::move(path));
  return paths;
}

void warn_of_later_steps(fs::path const& run_directory, Checkpoint const& checkpoint, Log& log) {
  std::optional<Outcome> outcome;
  try {
    outcome = read_outcome(run_directory);
  } catch (Error const& damaged) {
    log.warning(damaged.what());
  }
  auto const step = checkpoint.record().position.step;
  if (!outcome || outcome->steps <= step) return;
  log.warning(str("the weights are of step ", step, ", and ", run_directory.string(),
                  outcome->status == RunStatus::running ? " is at step " : " went on to step ",
                  outcome->steps, ", which was not saved",
                  outcome->status == RunStatus::complete ? " (checkpoint.at_end saves it)" : ""));
}

void set_aside_after(Checkpoint const& taken, Log& log) {
  auto const run_directory = taken.folder().parent_path().parent_path();
  for (auto const& path : checkpoints_of(run_directory)) {
    if (path == taken.folder()) return;
    auto const name = std::string(passed_over) + path.filename().string();
    auto const aside = free_name(path.parent_path() / name);
    std::error_code failed;
    fs::rename(path, aside, failed);
    if (failed)
      throw Error(ExitCode::io, "cannot move " + path.string() + " aside", failed.message());
    log.warning(str(path.string(), " was passed over, and is ", aside.filename().string(), " now"));
  }
}

std::optional<Checkpoint> newest_checkpoint(fs::path const& run_directory, Log& log) {
  std::optional<Error> problem;
  for (auto const& path : checkpoints_of(run_directory)) {
    try {
      Checkpoint checkpoint(path);
      checkpoint.read([](StateName const&, at::Tensor const&) {});
      return checkpoint;
    } catch (Error const& error) {
      log.warning(error.what());
      problem = error;
    }
  }
  if (problem)
    throw Error(ExitCode::checkpoint, "no checkpoint of " + run_directory.string() + " is whole",
                problem->what(),
                "remove " + checkpoint_folder(run_directory).string() + " to start at step 0");
  return std::nullopt;
}

}  // namespace stratagem
