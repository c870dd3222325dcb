#include "strategy/state/counters.hpp"

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "strategy/shared/gradient_scale.hpp"

namespace stratagem {
namespace {

std::string name_of(std::string const& counter, int worker) {
  return str(counter, "/", worker);
}

/// The worker with the least loss scale; nothing where workers have none of their own.
std::optional<int> least_scaled(Counters const& counters) {
  std::optional<int> least;
  auto const scale = [&](int worker) {
    return counters.find(name_of(GradientScale::scale_name, worker));
  };
  for (int worker = 0; scale(worker) != counters.end(); ++worker)
    if (!least || scale(worker)->second < scale(*least)->second) least = worker;
  return least;
}

}  // namespace

Counters gather_counters(State const& state, Communicator& communicator) {
  std::string own;
  for (auto const& [name, value] : state.counters)
    own += str(state.counters_of < 0 ? name : name_of(name, state.counters_of), ' ',
               shortest(*value), '\n');
  Counters counters;
  for (auto const& text : gather_texts(communicator, own))
    for (auto const& line : split(text, '\n')) {
      auto const space = line.find(' ');
      if (space == std::string::npos) continue;
      auto const value = parse_number(line.substr(space + 1));
      expects(value.has_value(), "a counter's value");
      counters[line.substr(0, space)] = *value;
    }
  if (auto const worker = least_scaled(counters))
    for (auto const& [name, value] : counters_of(*worker, counters))
      if (name.find('/') == std::string::npos) counters[name] = value;
  return counters;
}

void load_counters(State const& state, Counters const& counters) {
  auto const own = state.counters_of < 0 ? counters : counters_of(state.counters_of, counters);
  for (auto const& [name, value] : state.counters)
    if (auto const given = own.find(name); given != own.end()) *value = given->second;
}

Counters counters_of(int worker, Counters const& counters) {
  auto found = counters;
  auto const suffix = name_of("", worker);
  for (auto const& [name, value] : counters)
    if (name.ends_with(suffix)) found[name.substr(0, name.size() - suffix.size())] = value;
  return found;
}

}  // namespace stratagem
