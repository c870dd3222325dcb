#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace stratagem::trace {

/// A queue between one writing and one reading thread, without locks or allocation. If it is full,
/// the newest element is dropped and counted.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : slots_(capacity) {}

  void push(T const& value) {
    auto const end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == slots_.size()) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    slots_[end % slots_.size()] = value;
    end_.store(end + 1, std::memory_order_release);
  }

  /// Everything pushed so far, in order.
  std::vector<T> drain() {
    auto const begin = begin_.load(std::memory_order_relaxed);
    auto const end = end_.load(std::memory_order_acquire);
    std::vector<T> values;
    values.reserve(end - begin);
    for (auto i = begin; i != end; ++i) values.push_back(slots_[i % slots_.size()]);
    begin_.store(end, std::memory_order_release);
    return values;
  }

  std::size_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  std::vector<T> slots_;
  std::atomic<std::size_t> begin_ = 0;
  std::atomic<std::size_t> end_ = 0;
  std::atomic<std::size_t> dropped_ = 0;
};

}  // namespace stratagem::trace
