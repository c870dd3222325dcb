#include "keys/value.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "keys/suggestion.hpp"
#include "keys/text_form.hpp"
#include "keys/variables.hpp"

namespace stratagem {
namespace {

Complaint must_be(Scalar const& scalar, std::string const& expected) {
  return "is " + abridged(scalar.text) + ", must be " + expected;
}

/// Some readers of YAML take "0123" as 83, others as 123.
bool has_leading_zero(std::string_view digits) {
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return digits.size() > 1 && digits.front() == '0';
}

}  // namespace

Range Range::up_to(double most) const {
  return most < high_ ? Range(low_, low_included_, most, true) : *this;
}

std::string Range::text() const {
  bool const has_low = low_ > -no_limit;
  bool const has_high = high_ < no_limit;
  if (has_low && has_high)
    return str("in ", low_included_ ? '[' : '(', shortest(low_), ", ", shortest(high_),
               high_included_ ? ']' : ')');
  if (has_low) return (low_included_ ? ">= " : "> ") + shortest(low_);
  if (has_high) return (high_included_ ? "<= " : "< ") + shortest(high_);
  return {};
}

Value flag(bool& place) {
  return {"true | false",
          "",
          [&place] { return place ? "true" : "false"; },
          [&place](Scalar const& scalar) -> Complaint {
            bool const is_true = scalar.text == "true";
            if (scalar.quoted || (!is_true && scalar.text != "false"))
              return must_be(scalar,
                             scalar.quoted ? "true or false, without quotes" : "true or false");
            place = is_true;
            return {};
          },
          {.kind = Shape::Kind::flag}};
}

Value number(double& place, Range range) {
  return {"number",
          range.text(),
          [&place] { return shortest(place); },
          [&place, range](Scalar const& scalar) -> Complaint {
            if (scalar.quoted) return must_be(scalar, "a number, without quotes");
            auto const value = parse_number(scalar.text);
            if (!value) return must_be(scalar, "a number");
            if (!range.contains(*value))
              return "is " + shortest(*value) + ", must be " + range.text();
            place = *value;
            return {};
          },
          {.kind = Shape::Kind::number, .range = range}};
}

Value whole_number(Range range, std::int64_t most, std::function<std::int64_t()> get,
                   std::function<void(std::int64_t)> set) {
  return {"integer",
          range.text(),
          [get] { return std::to_string(get()); },
          [range, most, set](Scalar const& scalar) -> Complaint {
            if (scalar.quoted) return must_be(scalar, "an integer, without quotes");
            if (has_leading_zero(scalar.text))
              return must_be(scalar, "an integer without leading zeros");
            auto const value = parse_integer(scalar.text);
            if (!value) return must_be(scalar, "an integer");
            if (!range.contains(static_cast<double>(*value)))
              return str("is ", *value, ", must be ", range.text());
            if (*value > most) return str("is ", *value, ", must be <= ", most);
            set(*value);
            return {};
          },
          {.kind = Shape::Kind::integer, .range = range.up_to(static_cast<double>(most))}};
}

Value number_or_auto(double& place, Range range) {
  auto const given = number(place, range);
  return {"auto | number",
          given.range,
          [&place, given] { return place == 0 ? "auto" : given.get(); },
          [&place, given](Scalar const& scalar) -> Complaint {
            if (scalar.text != "auto") return given.set(scalar);
            place = 0;
            return {};
          },
          {.pattern = "auto|[0-9.]+([eE][-+]?[0-9]+)?"}};
}

Value text(std::string& place) {
  return {"text",
          "",
          [&place] { return yaml_quoted(escape_variables(place)); },
          [&place](Scalar const& scalar) -> Complaint {
            place = scalar.text;
            return {};
          },
          {}};
}

Value numbers(std::vector<double>& place, Range range) {
  auto const written = [&place] {
    std::vector<std::string> words;
    for (auto const value : place) words.push_back(shortest(value));
    return yaml_quoted(join(words, " "));
  };
  auto const read = [&place, range](Scalar const& scalar) -> Complaint {
    std::vector<double> values;
    auto text = scalar.text;
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    std::ranges::replace(text, ',', ' ');
    for (auto const& word : split(text, ' ')) {
      if (word.empty()) continue;
      auto const value = parse_number(word);
      if (!value || !range.contains(*value))
        return str("has ", abridged(word), ", must be numbers ", range.text());
      values.push_back(*value);
    }
    place = values;
    return {};
  };
  return {"numbers", range.text(), written, read, {.kind = Shape::Kind::numbers, .range = range}};
}

Value one_of(std::vector<std::string> names, std::function<std::string()> get,
             std::function<void(std::size_t)> set) {
  auto type = join(names, " | ");
  return {std::move(type),
          "",
          std::move(get),
          [names, set = std::move(set)](Scalar const& scalar) -> Complaint {
            auto const found = std::ranges::find(names, scalar.text);
            if (found == names.end())
              return *must_be(scalar, "one of " + join(names, ", ")) +
                     suggest_value(scalar.text, names);
            set(static_cast<std::size_t>(found - names.begin()));
            return {};
          },
          {.kind = Shape::Kind::choice, .names = names}};
}

Value name(std::string& place, std::vector<std::string> names) {
  return one_of(
      names, [&place] { return place; },
      [&place, names](std::size_t position) { place = names[position]; });
}

Value constant(std::string only) {
  return {only,
          "",
          [only] { return only; },
          [only](Scalar const& scalar) -> Complaint {
            if (scalar.text != only) return must_be(scalar, only);
            return {};
          },
          {.kind = Shape::Kind::choice, .names = {only}}};
}

}  // namespace stratagem
