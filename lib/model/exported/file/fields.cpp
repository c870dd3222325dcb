#include "model/exported/file/fields.hpp"

#include <limits>

#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr int deepest_value = 40;  ///< code that walks JSON is recursive

}  // namespace

Fields::Json Fields::parse(std::string const& record) const {
  bool shallow = true;
  auto const watch = [&](int depth, Json::parse_event_t, Json const&) {
    shallow = shallow && depth <= deepest_value;
    if (!shallow) refuse(str("its record ", record, " has values within values"));
    return true;
  };
  auto content = Json::parse(archive_.text(record), watch, /*allow_exceptions=*/false);
  if (!content.is_object()) refuse(str("its record ", record, " is not a JSON object"));
  return content;
}

Fields::Json const& Fields::member(Json const& of, char const* key) const {
  if (!of.is_object() || !of.contains(key)) refuse(str("its graph lacks \"", key, "\""));
  return of.at(key);
}

Fields::Json const& Fields::object(Json const& of, char const* key) const {
  auto const& value = member(of, key);
  if (!value.is_object()) refuse(str("\"", key, "\" of its graph is not an object"));
  return value;
}

Fields::Json const& Fields::array(Json const& of, char const* key) const {
  auto const& value = member(of, key);
  if (!value.is_array()) refuse(str("\"", key, "\" of its graph is not a list"));
  return value;
}

std::string Fields::text(Json const& of, char const* key) const {
  auto const& value = member(of, key);
  if (!value.is_string()) refuse(str("\"", key, "\" of its graph is not a text"));
  return value.get<std::string>();
}

std::int64_t Fields::integer(Json const& of, char const* key) const {
  return as_integer(member(of, key), str("\"", key, "\" of its graph"));
}

std::int64_t Fields::as_integer(Json const& value, std::string const& what) const {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  bool const fits = !value.is_number_unsigned() || value.get<std::uint64_t>() <= most;
  if (!value.is_number_integer() || !fits) refuse(str(what, " is not an integer"));
  return value.get<std::int64_t>();
}

double Fields::as_number(Json const& value, std::string const& what) const {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  if (value == "Infinity") return infinity;
  if (value == "-Infinity") return -infinity;
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) refuse(str(what, " is not a number"));
  return value.get<double>();
}

std::pair<std::string, Fields::Json const&> Fields::tagged(Json const& value,
                                                           std::string const& what) const {
  if (!value.is_object() || value.size() != 1) refuse(str(what, " is not one tagged value"));
  return {value.begin().key(), value.begin().value()};
}

}  // namespace stratagem
