#include "keys/home.hpp"

#include "keys/text_form.hpp"

namespace stratagem {

HomePath expand_home(std::string const& path, Environment const& environment) {
  if (!path.starts_with('~')) return {path, {}};
  if (path.size() > 1 && path[1] != '/')
    return {path, "begins with ~: only ~/ is known, for your own home folder; write " +
                      abridged("/home/" + path.substr(1)) + " or wherever it is, or " +
                      abridged("./" + path) + " for a name with a ~"};
  auto const home = environment("HOME").value_or("");
  if (home.empty())
    return {path, "begins with ~/, and HOME is not set; write the whole path, or export HOME=..."};
  return {home + path.substr(1), {}};
}

}  // namespace stratagem
