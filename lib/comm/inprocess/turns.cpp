#include "comm/inprocess/turns.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

bool always() {
  return true;
}

}  // namespace

Turns::Turns(int players, std::uint64_t seed, std::function<bool()> happens)
    : random_(seed, "turns"),
      happens_(std::move(happens)),
      missing_(players),
      players_(static_cast<std::size_t>(players)) {}

void Turns::enter(int player) {
  std::unique_lock lock(mutex_);
  auto& self = players_[static_cast<std::size_t>(player)];
  self.what = "its first turn";
  self.ready = always;
  if (--missing_ == 0) choose_next();
  await_turn(lock, player);
}

void Turns::wait_until(int player, std::string what, std::function<bool()> ready) {
  std::unique_lock lock(mutex_);
  polls_ = 0;
  give_away(lock, player, std::move(what), std::move(ready));
}

void Turns::pause(int player) {
  wait_until(player, "its next turn", always);
}

void Turns::poll(int player) {
  std::unique_lock lock(mutex_);
  if (!verdict_ && ++polls_ > most_polls) give_up();
  give_away(lock, player, "what it asks for", always);
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

void Turns::give_away(std::unique_lock<std::mutex>& lock, int player, std::string what,
                      std::function<bool()> ready) {
  if (verdict_) std::rethrow_exception(verdict_);
  auto& self = players_[static_cast<std::size_t>(player)];
  self.what = std::move(what);
  self.ready = std::move(ready);
  choose_next();
  await_turn(lock, player);
}

void Turns::await_turn(std::unique_lock<std::mutex>& lock, int player) {
  players_[static_cast<std::size_t>(player)].turn.wait(
      lock, [&] { return running_ == player || verdict_; });
  if (verdict_) std::rethrow_exception(verdict_);
}

void Turns::choose_next() {
  std::vector<std::size_t> candidates;
  while (true) {
    candidates.clear();
    bool anyone_left = false;
    for (std::size_t i = 0; i < players_.size(); ++i) {
      if (players_[i].left) continue;
      anyone_left = true;
      if (players_[i].ready()) candidates.push_back(i);
    }
    if (!anyone_left) return;
    if (!candidates.empty() && random_.word64(drawn_++) % 2 == 0) break;
    if (happens_())
      polls_ = 0;
    else if (candidates.empty())
      return give_up();
    else
      break;
  }
  auto const next = candidates[random_.word64(drawn_++) % candidates.size()];
  running_ = static_cast<int>(next);
  players_[next].turn.notify_one();
}

void Turns::give_up() {
  verdict_ = reason_ ? reason_
                     : std::make_exception_ptr(
                           Error(ExitCode::stall, "all ranks wait for one another", who_waits()));
  for (auto& player : players_) player.turn.notify_one();
}

std::string Turns::who_waits() const {
  std::vector<std::string> waits;
  for (std::size_t i = 0; i < players_.size(); ++i)
    waits.push_back(str("rank ", i, players_[i].left ? " has ended" : " waits for ",
                        players_[i].left ? "" : players_[i].what));
  return join(waits, ", ");
}

}  // namespace stratagem
