#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stratagem {

/// A value as a user wrote it.
struct Scalar {
  std::string text;
  bool quoted = false;  ///< in quotes, so a text even if it looks like a number
  bool null = false;    ///< empty, ~ or null
  bool list = false;    ///< a list, of which `text` has the items with blanks between them
};

/// What is wrong with a value; empty if nothing is: "is 0, must be >= 1".
using Complaint = std::optional<std::string>;

/// Bounds of a number.
class Range {
 public:
  Range(double low, bool low_included, double high, bool high_included)
      : low_(low), high_(high), low_included_(low_included), high_included_(high_included) {}

  bool contains(double value) const {
    return (low_included_ ? value >= low_ : value > low_) &&
           (high_included_ ? value <= high_ : value < high_);
  }
  /// The part of the range up to `most`.
  Range up_to(double most) const;
  std::string text() const;

  double low() const { return low_; }    ///< -no_limit: none
  double high() const { return high_; }  ///< no_limit: none
  bool low_included() const { return low_included_; }
  bool high_included() const { return high_included_; }

 private:
  double low_, high_;
  bool low_included_, high_included_;
};

inline constexpr double no_limit = std::numeric_limits<double>::infinity();
inline Range at_least(double low) {
  return {low, true, no_limit, false};
}
inline Range above(double low) {
  return {low, false, no_limit, false};
}
/// Both ends are included.
inline Range between(double low, double high) {
  return {low, true, high, true};
}

/// The values that a type allows, described for tools outside this program.
struct Shape {
  enum class Kind { text, flag, integer, number, numbers, choice };

  Kind kind = Kind::text;
  std::vector<std::string> names = {};                ///< of a choice
  Range range = {-no_limit, false, no_limit, false};  ///< of a number, or each of several
  std::string pattern = {};                           ///< of a text: must match it completely
};

/// The type of a key, bound to the variable that holds its value.
struct Value {
  std::string type;                             ///< "integer", "true | false", "mean | sum"
  std::string range;                            ///< ">= 1"; empty: any
  std::function<std::string()> get;             ///< as YAML; empty: nothing to write
  std::function<Complaint(Scalar const&)> set;  ///< does not change the variable if it complains
  Shape shape = {};
};

Value flag(bool& place);
Value number(double& place, Range range);
/// Of which 0, which is not in `range`, is written as "auto".
Value number_or_auto(double& place, Range range);
Value text(std::string& place);
/// A text that must be one of `names`.
Value name(std::string& place, std::vector<std::string> names);
/// Several numbers: a list, or a text with blanks or commas between them.
Value numbers(std::vector<double>& place, Range range);
/// Not a variable: the only value that this program knows.
Value constant(std::string only);

/// `get` returns a name; `set` takes the index of one.
Value one_of(std::vector<std::string> names, std::function<std::string()> get,
             std::function<void(std::size_t)> set);

/// `names` are those of the enumerators, in the same order.
template <class Enum>
Value choice(Enum& place, std::vector<std::string> names) {
  return one_of(
      names, [&place, names] { return names.at(static_cast<std::size_t>(place)); },
      [&place](std::size_t position) { place = static_cast<Enum>(position); });
}

/// A variable that may be empty; `make` makes the Value for its content.
template <class T, class Make>
Value if_given(std::optional<T>& place, Make make) {
  auto const held = std::make_shared<T>();
  Value const inner = make(*held);
  return {inner.type, inner.range,
          [&place, held, inner] {
            if (place) *held = *place;
            return place ? inner.get() : std::string();
          },
          [&place, held, inner](Scalar const& scalar) {
            auto complaint = inner.set(scalar);
            if (!complaint) place = *held;
            return complaint;
          },
          inner.shape};
}

/// `set` gets numbers that are within the range and at most `most`.
Value whole_number(Range range, std::int64_t most, std::function<std::int64_t()> get,
                   std::function<void(std::int64_t)> set);

/// A variable of an unsigned 64-bit type accepts numbers below 2^63.
template <std::integral Integer>
Value integer(Integer& place, Range range) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return whole_number(
      range, std::in_range<Integer>(most) ? most : std::numeric_limits<Integer>::max(),
      [&place] { return static_cast<std::int64_t>(place); },
      [&place](std::int64_t value) { place = static_cast<Integer>(value); });
}

}  // namespace stratagem
