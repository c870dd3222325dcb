#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "strategy/strategy.hpp"

namespace stratagem {

/// What some rank wants of all, passed on from neighbour to neighbour with the messages of mixings.
/// It ages with every mixing, and all act on it together: when the last worker can have heard it.
class Tidings {
 public:
  /// Elements of a message.
  static constexpr std::int64_t size = 4;

  /// Mixings in which all hear of all.
  explicit Tidings(int reach) : reach_(reach) {}

  /// This rank wants something; again is not sooner.
  void tell(Requests const& wanted);
  /// It cannot continue.
  void refuse() { tell(refusal); }
  /// `heard`: [size] on the host, of a neighbour.
  void hear(double const* heard);
  void end_mixing();

  /// [size], of messages.
  std::array<double, size> const& ages() const { return ages_; }
  /// Some rank cannot continue, as far as this one has heard.
  bool tells_refusal() const { return ages_[refusal] > 0; }
  /// All ranks know these, from the same mixing on.
  Requests requests() const;
  bool refused() const { return known(refusal); }

 private:
  enum Field : std::size_t { stop, interrupt, save, refusal };

  void tell(Field field) { ages_[field] = std::max(ages_[field], 1.0); }
  bool known(Field field) const { return ages_[field] > reach_; }

  int reach_;
  std::array<double, size> ages_{};  ///< mixings that tell it, the next among them; 0: nothing
};

inline void Tidings::tell(Requests const& wanted) {
  if (wanted.stop) tell(stop);
  if (wanted.interrupt) tell(interrupt);
  if (wanted.save) tell(save);
}

inline void Tidings::hear(double const* heard) {
  for (auto& age : ages_) age = std::max(age, *heard++);
}

inline void Tidings::end_mixing() {
  for (auto& age : ages_)
    if (age > 0) ++age;
}

inline Requests Tidings::requests() const {
  return {.stop = known(stop), .interrupt = known(interrupt), .save = known(save)};
}

}  // namespace stratagem
