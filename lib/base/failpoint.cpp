#include "base/failpoint.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::string_view delay_prefix = "delay=";

/// In the order of Failpoints::Action.
std::vector<std::string> const& action_names() {
  static std::vector<std::string> const names{"kill", "stop",  "segv",    "abort",  "exit",
                                              "spin", "throw", "nospace", "delay=", "corrupt"};
  return names;
}

[[noreturn]] void refuse(std::string const& text, std::string const& why) {
  throw Error(ExitCode::usage, str("STRATAGEM_FAIL: \"", text, "\" names no fault"), why,
              "write site:rank:step:action, with commas between faults");
}

/// Empty for "*".
std::optional<std::int64_t> number_or_all(std::string const& text, std::string const& field) {
  if (field == "*") return std::nullopt;
  auto const number = parse_integer(field);
  if (!number || *number < 0) refuse(text, str("\"", field, "\" is neither a number nor *"));
  return number;
}

}  // namespace

Failpoints::Failpoints(std::string_view text, int rank) {
  if (text.empty()) return;
  for (auto const& item : split(text, ',')) {
    auto const fields = split(item, ':');
    if (fields.size() != 4) refuse(item, "it has not four parts");
    auto const point = parse(item, fields);
    if (number_or_all(item, fields[1]).value_or(rank) == rank) points_.push_back(point);
  }
}

Failpoints::Point Failpoints::parse(std::string const& text, std::span<std::string const> fields) {
  auto const* const site = std::ranges::find(failpoint_sites, fields[0]);
  if (site == failpoint_sites.end()) {
    std::vector<std::string> const known(failpoint_sites.begin(), failpoint_sites.end());
    refuse(text, str("unknown site", did_you_mean(fields[0], known)));
  }
  Point point{.site = *site,
              .step = number_or_all(text, fields[2]),
              .action = Action::kill,
              .delay = std::chrono::milliseconds(0)};
  auto name = fields[3];
  if (name.starts_with(delay_prefix)) {
    auto const delay = parse_integer(name.substr(delay_prefix.size()));
    if (!delay || *delay < 0) refuse(text, "a delay is a number of milliseconds");
    point.delay = std::chrono::milliseconds(*delay);
    name = delay_prefix;
  }
  auto const& names = action_names();
  auto const action = std::ranges::find(names, name);
  if (action == names.end()) refuse(text, str("unknown action", did_you_mean(name, names)));
  point.action = static_cast<Action>(action - names.begin());
  return point;
}

void Failpoints::act(std::string_view site, std::int64_t step) const {
  expects(std::ranges::count(failpoint_sites, site) == 1, "a site that can be named");
  for (auto const& point : points_)
    if (point.is_at(site, step)) act(point);
}

bool Failpoints::flip(std::string_view site, std::int64_t step, std::span<std::byte> data) const {
  expects(std::ranges::count(failpoint_sites, site) == 1, "a site that can be named");
  bool const planted = std::ranges::any_of(points_, [&](Point const& point) {
    return point.action == Action::corrupt && point.is_at(site, step);
  });
  if (planted && !data.empty()) data[data.size() / 2] ^= std::byte{1};
  return planted && !data.empty();
}

void Failpoints::act(Point const& point) {
  switch (point.action) {
    case Action::kill:
      std::raise(SIGKILL);
      return;
    case Action::stop:
      std::raise(SIGSTOP);
      return;
    case Action::segv:
      std::raise(SIGSEGV);
      return;
    case Action::abort:
      std::abort();
    case Action::exit:
      std::exit(0);
    case Action::spin:
      for (std::atomic<bool> const forever = true; forever;) {
      }
      return;
    case Action::fail:
      throw std::runtime_error(str("a fault was planted at ", point.site));
    case Action::nospace:
      throw Error(ExitCode::io, str("cannot write at ", point.site), std::strerror(ENOSPC));
    case Action::delay:
      std::this_thread::sleep_for(point.delay);
      return;
    case Action::corrupt:
      return;  // happens in corrupt()
  }
}

}  // namespace stratagem
