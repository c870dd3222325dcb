#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// The parts of a model that workers average in turn, and when (streaming DiLoCo, Douillard et al.
/// 2025, arXiv 2501.18512): a value, the same on all ranks. A fragment is consecutive blocks, with
/// about as many elements as the others. Each is sent every `inner_steps` steps, and taken `delay`
/// steps later, before the next one is sent.
///
/// `made` is the number of steps that workers have made apart.
class Fragments {
 public:
  Fragments() = default;  ///< none
  /// `count` is at most most() and `inner_steps`; `delay` less than inner_steps / count.
  Fragments(ParameterLayout const& layout, int count, int inner_steps, int delay);

  /// Of any model: its blocks that have parameters.
  static int most(ParameterLayout const& layout);

  /// In the order of the flat space, which they cover.
  std::span<FlatRange const> ranges() const { return ranges_; }
  std::int64_t largest() const;  ///< [elements]
  int largest_gap() const;       ///< steps from one sending to the next
  int delay() const { return delay_; }

  std::optional<FlatRange> sent_after(std::int64_t made) const;
  std::optional<FlatRange> taken_after(std::int64_t made) const;
  /// What was sent, and not taken yet.
  std::optional<FlatRange> under_way_after(std::int64_t made) const;

 private:
  int count() const { return static_cast<int>(ranges_.size()); }
  /// The steps after which it is sent first.
  std::int64_t first_sending(int fragment) const {
    return std::int64_t{fragment + 1} * inner_steps_ / count();
  }

  std::vector<FlatRange> ranges_;
  int inner_steps_ = 1, delay_ = 0;
};

}  // namespace stratagem
