#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include "model/exported/program.hpp"

namespace stratagem {

/// Disjoint groups of values; at first each is alone.
class ValueGroups {
 public:
  explicit ValueGroups(std::size_t values) : parent_(values) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  std::size_t of(ValueId value) const {
    auto root = static_cast<std::size_t>(value);
    while (parent_[root] != root) root = parent_[root] = parent_[parent_[root]];
    return root;
  }
  void join(ValueId a, ValueId b) { parent_[of(a)] = of(b); }

 private:
  mutable std::vector<std::size_t> parent_;
};

}  // namespace stratagem
