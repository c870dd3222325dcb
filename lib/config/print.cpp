#include "config/print.hpp"

#include "config/keys.hpp"

namespace stratagem {

std::string print_config(RunConfig const& config) {
  RunConfig copy = config;  // keys are bound to variables
  std::string yaml;
  std::string open_section;
  for (auto const& key : keys_of(copy, {})) {
    auto const value = key.value.get();
    if (value.empty()) continue;
    auto const section = section_of(key.path);
    if (section != open_section) yaml += section + ":\n";
    open_section = section;
    yaml += (section.empty() ? "" : "  ") + name_in_section(key.path) + ": " + value + "\n";
  }
  return yaml;
}

std::map<std::string, std::string> config_values(RunConfig const& config) {
  RunConfig copy = config;
  std::map<std::string, std::string> values;
  for (auto const& key : keys_of(copy, {})) values[key.path] = key.value.get();
  return values;
}

}  // namespace stratagem
