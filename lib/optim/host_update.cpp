#include "optim/host_update.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "base/simd.hpp"
#include "optim/elementwise.hpp"

namespace stratagem {
namespace {

struct Slice {
  UpdatedMemory memory;
  std::int64_t begin, end;
};

/// A gradient g is finite only if g - g is 0. Inlined, the loop is compiled for the instruction set
/// of the function around it.
template <class Rule, std::size_t... kind>
[[gnu::always_inline]] inline bool update_each(Rule const rule, Slice const& slice,
                                               std::index_sequence<kind...>) {
  using T = typename Rule::Element;
  auto* const p = static_cast<T*>(slice.memory.parameters);
  auto const* const g = static_cast<T const*>(slice.memory.gradients);
  std::array<T*, Rule::kinds> const state{static_cast<T*>(slice.memory.state[kind])...};
  Flag<T> bad = 0;
  for (std::int64_t i = slice.begin; i < slice.end; ++i) {
    bad |= g[i] - g[i] != 0;
    rule(p[i], g[i], state[kind][i]...);
  }
  return bad == 0;
}

template <class Rule>
[[gnu::always_inline]] inline bool update_each(Rule const& rule, Slice const& slice) {
  return update_each(rule, slice, std::make_index_sequence<Rule::kinds>());
}

// Function multiversioning applies to plain functions: one per rule.
STRATAGEM_SIMD_CLONES bool update(SgdWithoutMomentum<float> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(SgdWithoutMomentum<double> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(SgdWithMomentum<float> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(SgdWithMomentum<double> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(NesterovSgd<float> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(NesterovSgd<double> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(AdamwRule<float> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}
STRATAGEM_SIMD_CLONES bool update(AdamwRule<double> const& rule, Slice const& slice) {
  return update_each(rule, slice);
}

}  // namespace

bool update_on_host(ElementRule const& rule, UpdatedMemory const& memory, std::int64_t begin,
                    std::int64_t end) {
  return std::visit([&](auto const& each) { return update(each, {memory, begin, end}); }, rule);
}

}  // namespace stratagem
