#include "comm/inprocess/turns.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

bool always() {
  return true;
}

}  // namespace

Turns::Turns(int players, std::uint64_t seed)
    : random_(seed, "turns"), missing_(players), players_(static_cast<std::size_t>(players)) {}

void Turns::enter(int player) {
  std::unique_lock lock(mutex_);
  players_[static_cast<std::size_t>(player)] = {.what = "its first turn", .ready = always};
  if (--missing_ == 0) choose_next();
  await_turn(lock, player);
}

void Turns::wait_until(int player, std::string what, std::function<bool()> ready) {
  std::unique_lock lock(mutex_);
  if (verdict_) std::rethrow_exception(verdict_);
  auto& self = players_[static_cast<std::size_t>(player)];
  self.what = std::move(what);
  self.ready = std::move(ready);
  choose_next();
  await_turn(lock, player);
}

void Turns::pause(int player) {
  wait_until(player, "its next turn", always);
}

void Turns::leave(int player) {
  std::lock_guard const lock(mutex_);
  players_[static_cast<std::size_t>(player)].left = true;
  if (!verdict_) choose_next();
}

void Turns::fail(std::exception_ptr reason) {
  std::lock_guard const lock(mutex_);
  if (!reason_) reason_ = std::move(reason);
}

void Turns::await_turn(std::unique_lock<std::mutex>& lock, int player) {
  changed_.wait(lock, [&] { return running_ == player || verdict_; });
  if (verdict_) std::rethrow_exception(verdict_);
}

void Turns::choose_next() {
  std::vector<int> candidates;
  bool anyone_left = false;
  for (std::size_t i = 0; i < players_.size(); ++i) {
    if (players_[i].left) continue;
    anyone_left = true;
    if (players_[i].ready()) candidates.push_back(static_cast<int>(i));
  }
  if (!candidates.empty())
    running_ = candidates[random_.word64(chosen_++) % candidates.size()];
  else if (anyone_left)
    verdict_ = reason_ ? reason_
                       : std::make_exception_ptr(
                             Error(ExitCode::stall, "all ranks wait for one another", who_waits()));
  changed_.notify_all();
}

std::string Turns::who_waits() const {
  std::vector<std::string> waits;
  for (std::size_t i = 0; i < players_.size(); ++i)
    waits.push_back(str("rank ", i, players_[i].left ? " has ended" : " waits for ",
                        players_[i].left ? "" : players_[i].what));
  return join(waits, ", ");
}

}  // namespace stratagem
