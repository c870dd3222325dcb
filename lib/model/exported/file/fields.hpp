#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/exported/file/archive.hpp"

namespace stratagem {

/// Members of JSON values in an archive, each of the type that it must have: Error(bad_data)
/// otherwise.
class Fields {
 public:
  using Json = nlohmann::json;

  explicit Fields(ProgramArchive const& archive) : archive_(archive) {}

  ProgramArchive const& archive() const { return archive_; }
  [[noreturn]] void refuse(std::string const& why) const { archive_.refuse(why); }

  /// A record that holds one JSON object, not too deeply nested.
  Json parse(std::string const& record) const;

  Json const& member(Json const& of, char const* key) const;
  Json const& object(Json const& of, char const* key) const;
  Json const& array(Json const& of, char const* key) const;
  std::string text(Json const& of, char const* key) const;
  std::int64_t integer(Json const& of, char const* key) const;
  /// The value itself; `what` names it in the message.
  std::int64_t as_integer(Json const& value, std::string const& what) const;
  /// Or "Infinity", "-Infinity", "NaN", which JSON's numbers lack.
  double as_number(Json const& value, std::string const& what) const;
  /// Key and value of the only member, as in `{"as_int": 3}`.
  std::pair<std::string, Json const&> tagged(Json const& value, std::string const& what) const;

 private:
  ProgramArchive const& archive_;
};

}  // namespace stratagem
