#include "mpi/patience.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/exit_code.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem::mpi {
namespace {

using namespace std::chrono_literals;

constexpr auto period = 100ms;
constexpr auto precedence = 2000ms;  // rank 0 speaks this much earlier

}  // namespace

Patience::Patience(std::chrono::milliseconds limit)
    : limit_ms_(limit.count()), thread_([this] { run(); }) {}

Patience::~Patience() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Patience::enter(std::string phase) {
  std::lock_guard const lock(mutex_);
  phase_ = std::move(phase);
}

void Patience::run() {
  name_thread("patience");
  auto waited = 0ms;
  std::uint64_t last = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return stopping_; })) {
    auto const* const call = call_.load();
    auto const number = number_.load();
    waited = call != nullptr && number == last ? waited + period : 0ms;
    last = number;
    auto const limit = std::chrono::milliseconds(limit_ms_) + (rank_ == 0 ? 0ms : precedence);
    if (waited >= limit && call != nullptr) give_up(call, waited);
  }
}

void Patience::give_up(char const* call, std::chrono::milliseconds waited) {
  auto const who = rank_ < 0 ? "a rank on " + host_name() : str("rank ", rank_.load());
  auto const text = str("stratagem: error: ", who, " has waited ",
                        format_duration(std::chrono::duration<double>(waited).count()),
                        " for other ranks at ", phase_, " (", call,
                        ": a rank hangs or is gone, or is slower than comm.timeout_s allows); "
                        "look at the ranks that say nothing, or raise comm.timeout_s\n");
  std::fputs(text.c_str(), stderr);
  std::_Exit(to_int(ExitCode::stall));
}

}  // namespace stratagem::mpi
