#include "trace/heartbeat_status.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace stratagem::trace {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// For numbers that only one thread writes.
void add_one(std::atomic<std::uint64_t>& number) {
  number.store(number.load(relaxed) + 1, relaxed);
}

// Durations are put into classes by their highest bit, from 4 us on, and the two bits after it.
constexpr int unit_bits = 10;

std::size_t class_of(std::int64_t ns, std::size_t classes) {
  auto const length = static_cast<std::uint64_t>(std::max<std::int64_t>(ns >> unit_bits, 4));
  auto const bits = static_cast<std::size_t>(std::bit_width(length));
  return std::min(4 * (bits - 3) + (length >> (bits - 3) & 3), classes - 1);
}

std::int64_t longest_of(std::size_t number) {
  return static_cast<std::int64_t>(number % 4 + 5) << (number / 4 + unit_bits);
}

std::string seconds_since(std::int64_t ns) {
  return format_duration(static_cast<double>(monotonic_ns() - ns) * 1e-9);
}

}  // namespace

HeartbeatStatus::HeartbeatStatus(Sign* sign) : sign_(sign != nullptr ? sign : &own_) {
  sign_->since_ns.store(monotonic_ns(), relaxed);
}

void HeartbeatStatus::enter(Activity activity, std::int64_t step) {
  end_stretch(!sign_->waits.load(relaxed));
  sign_->activity.store(activity, relaxed);
  sign_->step.store(step, relaxed);
}

void HeartbeatStatus::mark() {
  end_stretch(!sign_->waits.load(relaxed));
}

void HeartbeatStatus::end_step(std::int64_t busy_ns) {
  busy_[steps_++ % compared_steps] = busy_ns;
  // Without the first one, which also allocates what all later ones use.
  if (steps_ > compared_steps) sign_->busy_ns.store(*std::ranges::min_element(busy_), relaxed);
}

void HeartbeatStatus::end_stretch(bool counts) {
  auto const now = monotonic_ns();
  if (counts) {
    auto const activity = static_cast<std::size_t>(sign_->activity.load(relaxed));
    auto const length = now - sign_->since_ns.load(relaxed);
    auto& count = counts_[activity][class_of(length, lengths)];
    count.store(count.load(relaxed) + 1, relaxed);
  }
  sign_->since_ns.store(now, relaxed);
  add_one(sign_->marks);
}

HeartbeatStatus::Wait::Wait(HeartbeatStatus* heartbeat, char const* what) : heartbeat_(heartbeat) {
  if (heartbeat_ == nullptr) return;
  heartbeat_->end_stretch(true);
  heartbeat_->waits_for_.store(what, relaxed);
  heartbeat_->sign_->waits.store(true, relaxed);
}

HeartbeatStatus::Wait::~Wait() {
  if (heartbeat_ == nullptr) return;
  heartbeat_->end_stretch(false);
  heartbeat_->sign_->waits.store(false, relaxed);
}

std::uint64_t HeartbeatStatus::submitted(std::string_view name, std::int64_t bytes,
                                         std::int64_t peer) {
  std::lock_guard const lock(mutex_);
  auto const number = sign_->submitted.load(relaxed) + 1;
  last_[number % kept_operations] = {number, name, bytes, peer, monotonic_ns(), 0};
  sign_->submitted.store(number, relaxed);
  return number;
}

void HeartbeatStatus::finished(std::uint64_t number) {
  std::lock_guard const lock(mutex_);
  if (auto& operation = last_[number % kept_operations]; operation.number == number)
    operation.end_ns = monotonic_ns();
  add_one(sign_->finished);
}

void HeartbeatStatus::beat() {
  add_one(sign_->beats);
}

HeartbeatStatus::Stretches HeartbeatStatus::stretches(Activity activity) const {
  auto const& counts = counts_[static_cast<std::size_t>(activity)];
  Stretches found;
  for (auto const& count : counts) found.count += count.load(relaxed);
  std::int64_t so_far = 0;
  for (std::size_t i = 0; i < lengths && 100 * so_far < 99 * found.count; ++i) {
    so_far += counts[i].load(relaxed);
    found.p99_ns = longest_of(i);
  }
  return found;
}

std::string HeartbeatStatus::where() const {
  auto const step = sign_->step.load(relaxed);
  auto const name = activity_names[static_cast<std::size_t>(sign_->activity.load(relaxed))];
  auto const place = step < 0 ? std::string(name) : str("step ", step, ", ", name);
  auto const time = seconds_since(sign_->since_ns.load(relaxed));
  return sign_->waits.load(relaxed)
             ? str(place, ": has waited ", time, " for ", waits_for_.load(relaxed))
             : str(place, ": for ", time);
}

std::string HeartbeatStatus::last_operations() const {
  std::vector<Operation> operations;
  {
    std::lock_guard const lock(mutex_);
    std::ranges::copy_if(last_, std::back_inserter(operations),
                         [](Operation const& operation) { return operation.number > 0; });
  }
  std::ranges::sort(operations, {}, &Operation::number);
  std::vector<std::string> texts;
  for (auto const& of : operations) {
    auto const time = of.end_ns == 0
                          ? seconds_since(of.begin_ns) + " under way"
                          : format_duration(1e-9 * static_cast<double>(of.end_ns - of.begin_ns));
    texts.push_back(str(of.number, " ", of.name, of.peer < 0 ? "" : str(" with ", of.peer), ", ",
                        format_bytes(static_cast<double>(of.bytes)), ", ", time));
  }
  return join(texts, "; ");
}

}  // namespace stratagem::trace
