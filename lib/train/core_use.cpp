#include "train/core_use.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "comm/agreement.hpp"
#include "plan/process_setup.hpp"

namespace stratagem {
namespace {

using nlohmann::json;

CoreTimes read_times(std::string const& text) {
  auto const told = json::parse(text);
  auto const& busy = told.at("busy");
  return {.cores = told.at("cores").get<std::string>(),
          .available = told.at("available").get<double>(),
          .busy = busy.is_null() ? std::nan("") : busy.get<double>(),
          .own = told.at("own").get<double>()};
}

}  // namespace

double least_undisturbed(std::vector<CoreTimes> const& ranks) {
  std::map<std::string, double> own;
  for (auto const& rank : ranks) own[rank.cores] += rank.own;
  double least = 1;
  for (auto const& rank : ranks) {
    auto const others = std::max(rank.busy - own.at(rank.cores), 0.0);
    auto const share = std::isnan(rank.busy) ? rank.busy : 1 - others / rank.available;
    if (std::isnan(share)) return share;
    least = std::min(least, share);
  }
  return least;
}

CoreUse::CoreUse(ProcessInfo const& process)
    : name_(host_and_cores(process)),
      cores_(process.cores),
      began_ns_(monotonic_ns()),
      busy_before_s_(busy_seconds(cores_)),
      own_before_s_(process_cpu_seconds()) {}

double CoreUse::share(Communicator& communicator) const {
  auto const passed_s = 1e-9 * static_cast<double>(monotonic_ns() - began_ns_);
  auto const mine = json{{"cores", name_},
                         {"available", passed_s * static_cast<double>(cores_.size())},
                         {"busy", busy_seconds(cores_) - busy_before_s_},  // NaN becomes null
                         {"own", process_cpu_seconds() - own_before_s_}};
  std::vector<CoreTimes> ranks;
  for (auto const& text : gather_texts(communicator, mine.dump()))
    ranks.push_back(read_times(text));
  return least_undisturbed(ranks);
}

}  // namespace stratagem
