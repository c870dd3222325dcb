#include "predict/link.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array bits_per_s{Unit{"kbit", 1e3}, Unit{"mbit", 1e6}, Unit{"gbit", 1e9}};
constexpr std::array seconds{Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"s", 1}};

/// A number that is not negative, and its unit.
template <std::size_t count>
std::optional<double> quantity(std::string_view text, std::array<Unit, count> const& units) {
  for (auto const& [name, factor] : units) {
    if (!text.ends_with(name)) continue;
    auto const number = parse_number(std::string(text.substr(0, text.size() - name.size())));
    if (!number || !std::isfinite(*number) || *number < 0) return std::nullopt;
    return *number * factor;
  }
  return std::nullopt;
}

}  // namespace

Link parse_link(std::string const& text) {
  auto const comma = text.find(',');
  auto const rate = quantity(std::string_view(text).substr(0, comma), bits_per_s);
  auto const latency = comma == std::string::npos
                           ? std::optional(0.0)
                           : quantity(std::string_view(text).substr(comma + 1), seconds);
  if (!rate || *rate == 0 || !latency)
    throw Error(ExitCode::usage, "not a link: '" + text + "'",
                "a link is bits per second, and the latency of a message if it has one",
                "write it like 1gbit, or 100mbit,20ms");
  return {*rate / 8, *latency};
}

std::string bandwidth_text(double bytes_per_s) {
  auto const bits = 8 * bytes_per_s;
  return bits < 1e9 ? format_number(bits / 1e6, bits < 1e7 ? 1 : 0) + " Mbit/s"
                    : format_number(bits / 1e9, bits < 1e10 ? 1 : 0) + " Gbit/s";
}

StepCosts over_link(StepCosts costs, Link const& link, int ranks, Traffic const& traffic) {
  auto const byte_s = 1 / link.bandwidth;
  auto const to_others = [&](BenchOperation operation) {
    auto const group = traffic.ranks_of(operation, ranks);
    return static_cast<double>(group - 1) / group;
  };
  auto const carry = [&](TransferTimes& times, int rounds, double share) {
    if (costs.cores == 0) times = {};
    times = times.over(rounds * link.latency_s, rounds * share * byte_s);
  };
  carry(costs.all_reduce, 2, to_others(BenchOperation::all_reduce));
  carry(costs.reduce_scatter, 1, to_others(BenchOperation::reduce_scatter));
  carry(costs.all_gather, 1, to_others(BenchOperation::all_gather));
  carry(costs.message, 1, 1);
  carry(costs.exchange, 1, 1);
  return costs;
}

}  // namespace stratagem
