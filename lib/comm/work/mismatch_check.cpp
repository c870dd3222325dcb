#include "comm/work/mismatch_check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds patience = 2s;
constexpr int check_tag = 0, neighbour_tag = 1;

/// A line "<code> <text>" of a failure (empty without one), and logs. Short enough to be sent
/// without an answer from the receiver. If the logs do not fit, their oldest calls are left out.
using Message = std::array<char, 3072>;

Message to_message(std::optional<Error> const& failure, std::vector<std::string> logs) {
  constexpr std::size_t room = 512;  // of the line
  auto line = failure ? str(to_int(failure->code()), " ", failure->what()) : std::string();
  line.resize(std::min(line.size(), room));
  std::ranges::replace(line, '\n', ' ');
  Message message{};
  auto const left = message.size() - line.size() - 1;  // the text's end
  for (auto& log : logs) {
    log = '\n' + log;
    auto const most = left / logs.size();
    if (log.size() > most) log.erase(0, log.find('\n', log.size() - most));
  }
  std::ranges::copy(line + join(logs, ""), message.begin());
  return message;
}

std::string logs_in(Message const& message) {
  std::string const text = message.data();
  return text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

std::optional<Error> failure_in(Message const& message) {
  std::string const text = message.data();
  auto const line = text.substr(0, text.find('\n'));
  auto const space = line.find(' ');
  auto const code = parse_integer(line.substr(0, space));
  if (!code) return std::nullopt;
  return Error(static_cast<ExitCode>(*code), line.substr(space + 1));
}

struct Letters {
  Message own;
  std::vector<Message> theirs;  ///< by rank
  std::vector<mpi::Request> sent, received;
};

}  // namespace

struct MismatchCheck::Letter {
  Message message;
  mpi::Request sent;
};

MismatchCheck::MismatchCheck(mpi::Comm const& all, CollectiveLog const& log) {
  add(all, "", log);
}

MismatchCheck::~MismatchCheck() {
  for (auto& group : groups_) {
    try {
      if (group.letter == nullptr || group.letter->sent.test()) continue;
    } catch (Error const&) {
      // It may still be sent.
    }
    static_cast<void>(group.letter.release());
  }
}

void MismatchCheck::add(mpi::Comm const& group, std::string const& name, CollectiveLog const& log) {
  groups_.push_back({group.duplicate_for_good(), name, &log, nullptr});
}

void MismatchCheck::tell_neighbours() {
  for (auto& [comm, name, log, letter] : groups_) {
    if (comm.size() == 1 || (letter != nullptr && !letter->sent.test())) continue;
    letter = std::make_unique<Letter>(Letter{to_message({}, {log->text()}), {}});
    letter->sent = comm.send(std::as_bytes(std::span(letter->message)),
                             (comm.rank() + 1) % comm.size(), neighbour_tag);
  }
}

bool MismatchCheck::differs_from_neighbours() {
  bool differs = false;
  for (auto const& group : groups_)
    while (group.comm.has_message(neighbour_tag)) {
      Message theirs;
      auto const size = group.comm.size();
      group.comm
          .receive(std::as_writable_bytes(std::span(theirs)), (group.comm.rank() + size - 1) % size,
                   neighbour_tag)
          .wait();
      std::vector<std::string> const both{group.log->text(), logs_in(theirs)};
      differs = differs || first_difference(both);
    }
  return differs;
}

bool MismatchCheck::called() const {
  return groups_.front().comm.has_message(check_tag);
}

std::vector<std::string> MismatchCheck::logs() const {
  std::vector<std::string> logs;
  for (auto const& group : groups_) logs.push_back(group.log->text(group.name));
  return logs;
}

std::optional<Error> MismatchCheck::hold(std::optional<Error> const& failure) const {
  auto const& comm = groups_.front().comm;
  auto const ranks = static_cast<std::size_t>(comm.size());
  auto letters = std::make_unique<Letters>();
  letters->own = to_message(failure, logs());
  letters->theirs.resize(ranks);
  for (int peer = 0; peer < comm.size(); ++peer) {
    auto& received = letters->received.emplace_back();
    if (peer == comm.rank()) continue;
    auto& theirs = letters->theirs[static_cast<std::size_t>(peer)];
    letters->sent.push_back(comm.send(std::as_bytes(std::span(letters->own)), peer, check_tag));
    received = comm.receive(std::as_writable_bytes(std::span(theirs)), peer, check_tag);
  }
  auto const deadline = monotonic_ns() + patience.count();
  bool all = false;
  while (!all && monotonic_ns() < deadline) {
    all = mpi::test_all(letters->received);
    all = mpi::test_all(letters->sent) && all;
    if (!all) std::this_thread::sleep_for(1ms);
  }
  std::vector<std::string> logs(ranks);
  auto told = failure;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (static_cast<int>(rank) == comm.rank() || !letters->received[rank].test()) continue;
    logs[rank] = logs_in(letters->theirs[rank]);
    if (!told) told = failure_in(letters->theirs[rank]);
  }
  logs[static_cast<std::size_t>(comm.rank())] = logs_in(letters->own);
  // Messages in flight may arrive at any time until the process ends, which is soon.
  if (!all) static_cast<void>(letters.release());
  if (auto const difference = first_difference(logs)) return mismatch(*difference);
  return told;
}

}  // namespace stratagem
