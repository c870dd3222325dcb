#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace stratagem {

/// As wide as the type, so that a register holds as many.
template <class T>
using Flag = std::conditional_t<sizeof(T) == sizeof(std::int32_t), std::int32_t, std::int64_t>;

/// Calls `update` with slices [begin, end) of so many elements, on several threads. True when all
/// calls returned true.
bool for_slices(std::int64_t elements,
                std::function<bool(std::int64_t begin, std::int64_t end)> const& update);

}  // namespace stratagem
