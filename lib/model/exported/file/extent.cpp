#include "model/exported/file/extent.hpp"

#include <string>

#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr int deepest = 20;
constexpr std::int64_t greatest = std::int64_t{1}
                                  << 40;  ///< of a result: its products do not overflow

bool fits(Extent const& extent) {
  auto const small = [](std::int64_t value) { return -greatest <= value && value <= greatest; };
  return small(extent.fixed) && small(extent.per_sample);
}

/// Of sums and products, by recursive descent.
class Expression {
 public:
  Expression(std::string_view text, std::string_view samples) : rest_(text), samples_(samples) {}

  std::optional<Extent> read() {
    auto const value = term(0);
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::optional<Extent> term(int depth) {
    if (depth > deepest) return std::nullopt;
    if (!samples_.empty() && take(samples_)) return Extent{.per_sample = 1};
    if (take("Integer(")) {
      auto const end = rest_.find(')');
      if (end == std::string_view::npos) return std::nullopt;
      auto const value = parse_integer(rest_.substr(0, end));
      rest_.remove_prefix(end + 1);
      if (!value || !fits({.fixed = *value})) return std::nullopt;
      return Extent{.fixed = *value};
    }
    if (take("Add("))
      return combine(depth, [](Extent a, Extent b) -> std::optional<Extent> {
        return Extent{a.fixed + b.fixed, a.per_sample + b.per_sample};
      });
    if (take("Mul("))
      return combine(depth, [](Extent a, Extent b) -> std::optional<Extent> {
        if (a.per_sample != 0 && b.per_sample != 0) return std::nullopt;
        if (a.per_sample != 0) std::swap(a, b);
        __extension__ typedef __int128 Wide;
        auto const fixed = static_cast<Wide>(a.fixed) * b.fixed;
        auto const slope = static_cast<Wide>(a.fixed) * b.per_sample;
        if (fixed > greatest || fixed < -greatest || slope > greatest || slope < -greatest)
          return std::nullopt;
        return Extent{static_cast<std::int64_t>(fixed), static_cast<std::int64_t>(slope)};
      });
    return std::nullopt;
  }

  template <class Operation>
  std::optional<Extent> combine(int depth, Operation const& operation) {
    auto result = term(depth + 1);
    while (result && take(", ")) {
      auto const next = term(depth + 1);
      result = next ? operation(*result, *next) : std::nullopt;
      if (result && !fits(*result)) result.reset();
    }
    return take(")") ? result : std::nullopt;
  }

  std::string_view rest_, samples_;
};

}  // namespace

std::optional<Extent> extent_of(std::string_view expression, std::string_view samples) {
  return Expression(expression, samples).read();
}

}  // namespace stratagem
