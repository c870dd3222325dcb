#include "comm/mpi/mismatch_check.hpp"

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

/// A line "<code> <text>" of a failure (empty without one), and a log. Short enough to be sent
/// without an answer from the receiver. If the log does not fit, its oldest calls are left out.
using Message = std::array<char, 3072>;

Message to_message(std::optional<Error> const& failure, std::string log) {
  constexpr std::size_t room = 512;  // of the line
  auto line = failure ? str(to_int(failure->code()), " ", failure->what()) : std::string();
  line.resize(std::min(line.size(), room));
  std::ranges::replace(line, '\n', ' ');
  Message message{};
  auto const left = message.size() - line.size() - 2;  // a line's end, and the text's
  if (log.size() > left) log.erase(0, log.find('\n', log.size() - left) + 1);
  std::ranges::copy(line + '\n' + log, message.begin());
  return message;
}

std::string log_in(Message const& message) {
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

MismatchCheck::MismatchCheck(mpi::Comm const& comm, CollectiveLog const& log)
    : comm_(comm.duplicate_for_good()), log_(log) {}

MismatchCheck::~MismatchCheck() {
  try {
    if (letter_ == nullptr || letter_->sent.test()) return;
  } catch (Error const&) {
    // It may still be sent.
  }
  static_cast<void>(letter_.release());
}

void MismatchCheck::tell_neighbour() {
  if (letter_ != nullptr && !letter_->sent.test()) return;
  letter_ = std::make_unique<Letter>(Letter{to_message({}, log_.text()), {}});
  letter_->sent = comm_.send(std::as_bytes(std::span(letter_->message)),
                             (comm_.rank() + 1) % comm_.size(), neighbour_tag);
}

bool MismatchCheck::differs_from_neighbour() {
  bool differs = false;
  while (comm_.has_message(neighbour_tag)) {
    Message theirs;
    comm_
        .receive(std::as_writable_bytes(std::span(theirs)),
                 (comm_.rank() + comm_.size() - 1) % comm_.size(), neighbour_tag)
        .wait();
    differs = differs || first_difference(std::vector<std::string>{log_.text(), log_in(theirs)});
  }
  return differs;
}

bool MismatchCheck::called() const {
  return comm_.has_message(check_tag);
}

std::optional<Error> MismatchCheck::hold(std::optional<Error> const& failure) const {
  auto const ranks = static_cast<std::size_t>(comm_.size());
  auto letters = std::make_unique<Letters>();
  letters->own = to_message(failure, log_.text());
  letters->theirs.resize(ranks);
  for (int peer = 0; peer < comm_.size(); ++peer) {
    auto& received = letters->received.emplace_back();
    if (peer == comm_.rank()) continue;
    auto& theirs = letters->theirs[static_cast<std::size_t>(peer)];
    letters->sent.push_back(comm_.send(std::as_bytes(std::span(letters->own)), peer, check_tag));
    received = comm_.receive(std::as_writable_bytes(std::span(theirs)), peer, check_tag);
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
    if (static_cast<int>(rank) == comm_.rank() || !letters->received[rank].test()) continue;
    logs[rank] = log_in(letters->theirs[rank]);
    if (!told) told = failure_in(letters->theirs[rank]);
  }
  logs[static_cast<std::size_t>(comm_.rank())] = log_in(letters->own);
  // Messages in flight may arrive at any time until the process ends, which is soon.
  if (!all) static_cast<void>(letters.release());
  if (auto const difference = first_difference(logs)) return mismatch(*difference);
  return told;
}

}  // namespace stratagem
