#include "keys/variables.hpp"

#include <algorithm>
#include <cstdlib>

#include "keys/text_form.hpp"

namespace stratagem {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::optional<std::string> process_variable(std::string const& name) {
  char const* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Expansion expand_variables(std::string const& text, Environment const& environment) {
  Expansion result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 3, "$${") == 0) {
      result.text += "${";
      at += 3;
      continue;
    }
    if (text.compare(at, 2, "${") != 0) {
      result.text += text[at++];
      continue;
    }
    auto const end = std::min(text.find('}', at), text.size());
    auto const name = text.substr(at + 2, end - at - 2);
    if (end == text.size() || !is_variable_name(name)) {
      result.complaints.push_back(abridged(text.substr(at, end + 1 - at)) +
                                  " is not a variable ${NAME}; write $${ for a literal ${");
    } else if (auto const value = environment(name)) {
      result.text += *value;
      result.changed = true;
    } else {
      result.complaints.push_back("undefined variable ${" + shown_key(name) + "}; export " +
                                  shown_key(name) + "=...");
    }
    at = end + 1;
  }
  return result;
}

std::string escape_variables(std::string const& text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "${") == 0) escaped += '$';
    escaped += text[at];
  }
  return escaped;
}

}  // namespace stratagem
