#include "train/checkpoint/writer.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/largest_first.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/failure.hpp"
#include "gpu/memory.hpp"
#include "run_files/checkpoint.hpp"
#include "strategy/state/counters.hpp"
#include "trace/rank_trace.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr double most_blocked = 0.035;  ///< share of the time between two checkpoints
constexpr double talk_every_s = 30;     // as the progress display does
constexpr double shows_within_s = 120;  // a file that another node wrote, on a network file system

// Folders that are no checkpoints, whatever they hold.
constexpr char not_one = '.';
constexpr char const* half_written = ".writing-";
constexpr char const* given_up = ".old-";

double seconds_since(std::int64_t ns) {
  return static_cast<double>(monotonic_ns() - ns) / 1e9;
}

[[noreturn]] void fail(std::string const& action, fs::path const& path, int reason) {
  throw Error(ExitCode::io, str("cannot ", action, " ", path.string()), std::strerror(reason));
}

/// Names of files reach the disk with their folder.
void sync_folder(fs::path const& path) {
  int const folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail("open", path, errno);
  bool const synced = ::fsync(folder) == 0;
  int const reason = errno;
  ::close(folder);
  if (!synced) fail("sync", path, reason);
}

void move(fs::path const& from, fs::path const& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename", from, errno);
}

/// Each gets the other's name at once. False where the file system cannot do that.
bool exchange(fs::path const& a, fs::path const& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

void remove_quietly(fs::path const& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// At no moment does part of it look like a checkpoint.
void give_up(fs::path const& checkpoint) {
  auto const aside = checkpoint.parent_path() / (given_up + checkpoint.filename().string());
  std::error_code failed;
  fs::rename(checkpoint, aside, failed);
  if (!failed) remove_quietly(aside);
}

}  // namespace

std::map<std::string, int> deal_tensors(Model const& model, std::span<int const> ranks) {
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes;
  for (auto const& state : state_of(model)) {
    if (!state.parameter) continue;
    names.push_back(state.name);
    sizes.push_back(c10::multiply_integers(state.shape));
  }
  auto const place_of = deal_largest_first(sizes, ranks.size());
  std::map<std::string, int> dealt;
  for (std::size_t i = 0; i < names.size(); ++i) dealt[names[i]] = ranks[place_of[i]];
  return dealt;
}

CheckpointWriter::CheckpointWriter(Parts parts)
    : parts_(std::move(parts)),
      interval_s_(parts_.config.every_minutes * 60),
      last_ns_(monotonic_ns()) {
  if (!leads()) return;
  if (parts_.began_from) whole_.insert(*parts_.began_from);
  std::error_code none;
  for (auto const& entry : fs::directory_iterator(checkpoint_folder(parts_.run_directory), none)) {
    if (entry.path().filename().string().starts_with(not_one)) remove_quietly(entry.path());
  }
}

CheckpointWriter::~CheckpointWriter() = default;  // a file under way is written to its end

bool CheckpointWriter::due() const {
  if (!leads() || busy_) return false;
  return hastened_ || (interval_s_ > 0 && seconds_since(last_ns_) >= interval_s_);
}

std::string CheckpointWriter::save(TrainingProgress const& position, Participant& participant) {
  auto const began = monotonic_ns();
  static_cast<void>(finish());
  last_ns_ = began;
  hastened_ = false;
  auto const state = participant.state();
  Job job{.folder = checkpoint_folder(parts_.run_directory) /
                    str(half_written, checkpoint_name(position.step), "-a", parts_.attempt),
          .record = {.position = position,
                     .saved_wall_ns = wall_ns(),
                     .workers = parts_.workers,
                     .facts = parts_.facts,
                     .counters = gather_counters(state, parts_.communicator)},
          .began_ns = began};
  if (!make_folder(job.folder)) return str("step ", position.step, ": not saved");
  job.tensors = stage(state);
  job.blocked_s = seconds_since(began);
  if (leads()) lengthen_interval(job.blocked_s);
  auto const text =
      str("step ", position.step, ": training waited ", format_duration(job.blocked_s));
  own_written_ = false;
  all_written_ns_ = 0;
  busy_ = true;
  thread_ =
      std::jthread([this, job = std::move(job)](std::stop_token const& stop) { write(job, stop); });
  return text;
}

bool CheckpointWriter::make_folder(fs::path const& folder) {
  std::string problem;
  if (leads()) {
    std::error_code failed;
    remove_quietly(folder);
    // Not the run directory, which somebody may have removed.
    fs::create_directory(folder.parent_path(), failed);
    if (!failed) fs::create_directory(folder, failed);
    if (failed) problem = str("cannot create ", folder.string(), ": ", failed.message());
  }
  auto const texts = gather_texts(parts_.communicator, problem);
  if (texts.front().empty()) return true;
  problem_ = Error(ExitCode::io, texts.front());
  if (leads()) parts_.log.warning("no checkpoint: " + texts.front());
  return false;
}

NamedTensors CheckpointWriter::stage(State const& state) const {
  gpu::MemoryScope const scope(gpu::MemoryCategory::workspace);
  auto const mine = [this](std::string const& name) {
    return parts_.dealt.at(name) == parts_.communicator.rank();
  };
  NamedTensors staged;
  for (auto const& [kind, type, pieces, worker] : state.of_parameters)
    for (auto& [name, tensor] :
         gather(state, kind, parts_.model, mine, parts_.communicator, worker))
      staged.emplace_back(StateName{kind, name, worker}.text(), std::move(tensor));
  for (auto const& [worker, buffers] : state.buffers)
    for (auto& [name, tensor] : named(parts_.model, buffers))
      staged.emplace_back(StateName{StateName::buffers, name, worker}.text(), std::move(tensor));
  return staged;
}

void CheckpointWriter::lengthen_interval(double blocked_s) {
  if (interval_s_ == 0 || blocked_s <= most_blocked * interval_s_) return;
  interval_s_ = blocked_s / most_blocked;
  parts_.log.info(str("saving makes the training wait ", format_duration(blocked_s),
                      ": the next checkpoints come every ", format_duration(interval_s_)));
}

std::optional<Error> CheckpointWriter::finish() {
  if (!leads() && thread_.joinable()) thread_.join();
  if (leads()) own_written_.wait(false);
  auto const written = gather_texts(
      parts_.communicator, !leads() && problem_ ? std::string(problem_->what()) : std::string());
  if (leads() && thread_.joinable()) {
    bool const whole = std::ranges::all_of(written, &std::string::empty);
    if (whole)
      all_written_ns_ = monotonic_ns();
    else
      thread_.request_stop();
    thread_.join();
  }
  auto const committed = gather_texts(
      parts_.communicator, leads() && problem_ ? std::string(problem_->what()) : std::string());
  problem_.reset();
  if (committed.front().empty()) return std::nullopt;
  return Error(ExitCode::io, committed.front());
}

std::optional<std::string> CheckpointWriter::news() {
  std::lock_guard const lock(mutex_);
  return std::exchange(news_, std::nullopt);
}

void CheckpointWriter::tell(std::string const& text) {
  std::lock_guard const lock(mutex_);
  news_ = text;
}

void CheckpointWriter::write(Job const& job, std::stop_token const& stop) {
  name_thread("checkpoint");
  auto const part = trace::rank_label(parts_.communicator.rank());
  try {
    auto const own = write_own_file(job);
    parts_.keep_trace();
    // Its appearance tells rank 0 that the file it describes is whole.
    replace_file(job.folder / (part + ".json"), to_json(own));
    own_written_ = true;
    own_written_.notify_all();
    if (leads()) commit(job, stop);
  } catch (std::exception const& failure) {
    problem_ = as_error(failure);
    auto const text = str("step ", job.record.position.step, " was not saved: ", problem_->what());
    parts_.log.warning("checkpoint of " + text);
    if (leads()) {
      tell(text);
      remove_quietly(job.folder);
    } else {
      try {
        replace_file(job.folder / (part + ".failed"), problem_->what());
      } catch (Error const&) {
        // Rank 0 will hear of it when the ranks meet next.
      }
    }
    own_written_ = true;
    own_written_.notify_all();
  }
  busy_ = false;
}

CheckpointFile CheckpointWriter::write_own_file(Job const& job) const {
  if (job.tensors.empty()) return {};
  parts_.failpoints.reach("save_write", job.record.position.step);
  auto const name = trace::rank_label(parts_.communicator.rank()) + ".safetensors";
  return save_tensors(job.folder / name, job.tensors);
}

void CheckpointWriter::commit(Job const& job, std::stop_token const& stop) {
  auto record = job.record;
  auto pause = 5ms;
  for (int rank = 0; rank < parts_.communicator.size();) {
    auto const part = job.folder / trace::rank_label(rank);
    if (fs::exists(part.string() + ".json")) {
      auto file = checkpoint_file_from(read_text(part.string() + ".json", ExitCode::io));
      if (!file.name.empty()) record.files.push_back(std::move(file));
      ++rank;
      continue;
    }
    if (fs::exists(part.string() + ".failed") || stop.stop_requested())
      throw Error(ExitCode::io, str("rank ", rank, " could not write its part"), {}, "see its log");
    if (!fs::exists(job.folder) || is_lost())
      throw Error(ExitCode::io, str("the part of rank ", rank, " is not in ", job.folder.string()),
                  "somebody removed it");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, 500ms);
  }
  replace_file(job.folder / "manifest.json", to_json(record));
  for (int rank = 0; rank < parts_.communicator.size(); ++rank)
    fs::remove(job.folder / (trace::rank_label(rank) + ".json"));
  parts_.failpoints.reach("save_fsync", record.position.step);
  sync_folder(job.folder);
  auto const home = job.folder.parent_path();
  auto const name = checkpoint_name(record.position.step);
  bool const replaces = fs::exists(home / name) && exchange(job.folder, home / name);
  if (!replaces && fs::exists(home / name)) give_up(home / name);
  parts_.failpoints.reach("save_rename", record.position.step);
  if (!replaces) move(job.folder, home / name);
  sync_folder(home);
  parts_.committed(record.position.step);
  if (replaces) remove_quietly(job.folder);
  whole_.insert(home / name);
  remove_old();
  auto const took = seconds_since(job.began_ns);
  auto const text =
      str("step ", record.position.step, ": ", format_bytes(static_cast<double>(record.bytes())),
          " in ", format_duration(took), ", training waited ", format_duration(job.blocked_s));
  bool const quiet = told_ns_ != 0 && seconds_since(told_ns_) < talk_every_s;
  if (quiet) {
    parts_.log.detail("checkpoint of " + text);
  } else {
    parts_.log.info("checkpoint of " + text);
    told_ns_ = monotonic_ns();
  }
  tell(text);
}

bool CheckpointWriter::is_lost() const {
  auto const written_ns = all_written_ns_.load();
  return written_ns != 0 && seconds_since(written_ns) > shows_within_s;
}

void CheckpointWriter::remove_old() const {
  int kept = 0;
  for (auto const& path : checkpoints_of(parts_.run_directory)) {
    if (kept >= parts_.config.keep)
      give_up(path);
    else if (whole_.contains(path))
      ++kept;
  }
}

}  // namespace stratagem
