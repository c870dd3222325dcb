#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "keys/key.hpp"
#include "keys/text_form.hpp"
#include "strategy/ps/ps_config.hpp"
#include "strategy/shared/shared_keys.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t most_rank = 1 << 20;

/// A part of a policy, which need not be given.
template <class Enum>
Value part(std::optional<Enum>& place, std::vector<std::string> const& names) {
  return if_given(place, [&](Enum& which) { return choice(which, names); });
}
Value part(std::optional<int>& place, Range const& range) {
  return if_given(place, [&](int& n) { return integer(n, range); });
}

/// The names of rules, or numbers with commas between them.
Value server_ranks(PsConfig& ps) {
  static std::vector<std::string> const rules{"last", "first", "spread"};
  return {"last | first | spread | <ranks>",
          "",
          [&ps] {
            if (ps.server_ranks != ServerPlacement::listed)
              return rules.at(static_cast<std::size_t>(ps.server_ranks));
            std::vector<std::string> ranks;
            for (int const rank : ps.listed_ranks) ranks.push_back(std::to_string(rank));
            return yaml_quoted(join(ranks, ","));
          },
          [&ps](Scalar const& scalar) -> Complaint {
            if (auto const rule = std::ranges::find(rules, scalar.text); rule != rules.end()) {
              ps.server_ranks = static_cast<ServerPlacement>(rule - rules.begin());
              return {};
            }
            std::vector<int> ranks;
            for (auto const& piece : split(scalar.text, ',')) {
              auto const rank = parse_integer(piece);
              if (!rank || *rank < 0 || *rank > most_rank)
                return "is " + abridged(scalar.text) +
                       ", must be last, first, spread, or ranks such as 0,4";
              ranks.push_back(static_cast<int>(*rank));
            }
            ps.server_ranks = ServerPlacement::listed;
            ps.listed_ranks = std::move(ranks);
            return {};
          },
          {.pattern = "last|first|spread|[0-9]+(,[0-9]+)*"}};
}

/// Of sections advanced and experiment.
Keys keys_of_other_sections(PsConfig& ps) {
  return {
      {"advanced.gate", part(ps.gate, {"none", "bsp", "ssp", "softsync", "backup"}),
       "when an update is made, and when a worker may continue after a push"},
      {"advanced.over_cap", part(ps.over_cap, {"drop", "attenuate"}),
       "a gradient beyond lag_cap is dropped, or counts cap / lag"},
      {"advanced.weight", part(ps.weight, {"one", "inverse_lag", "inverse_gap"}),
       "factor of a gradient: 1 / lag; or of each element, 1 / gap; modified: inverse_lag, "
       "gap_aware: inverse_gap"},
      {"advanced.dc_decay",
       if_given(ps.dc_decay,
                [](double& x) {
                  return number(x, {0, true, 1, false});
                }),
       "of a running mean of g g, whose root divides dc_lambda; dc_adaptive: 0.95"},
      {"advanced.momentum", part(ps.momentum, {"shared", "per_worker", "look_ahead"}),
       "which gradients share a momentum; dana, delayed_sync: look_ahead"},
      {"advanced.pushes", part(ps.pushes, at_least(1)),
       "pushes into which a worker's share of a global batch is divided; modified: 2"},
      {"advanced.pull_every", part(ps.pull_every, at_least(1)),
       "pushes from one pull of the parameters to the next"},
      {"advanced.pull_at_lag", integer(ps.pull_at_lag, at_least(0)),
       "instead of pull_every: pull before a gradient would be this many versions old; 0: none"},
      {"advanced.cached_reads", flag(ps.cached_reads),
       "of gate ssp: pull only when staleness demands it, and apply own updates meanwhile"},
      {"advanced.pulls", choice(ps.pulls, {"consistent", "chunkwise"}),
       "unit of versions: the whole server, or each chunk, which comes back at once"},
      {"advanced.warm_start", integer(ps.warm_start, at_least(0)),
       "first steps, of asynchronous modes, in which an update is the mean of all workers' pushes"},
      {"experiment.slow_worker", integer(ps.slow_worker, at_least(-1)),
       "the worker that is made slower; -1: none"},
      {"experiment.slow", number(ps.slow, at_least(1)), "by this factor"},
  };
}

}  // namespace

Keys keys_of(PsConfig& ps) {
  Keys keys{
      {"servers", integer(ps.servers, at_least(1)), "ranks that own the parameters", false,
       InFirstFile::yes},
      {"server_ranks", server_ranks(ps),
       "the highest or lowest ranks, the last of each of equal groups, or a list such as 0,4"},
      {"chunk_mb", number(ps.chunk_mb, above(0)),
       "pieces in which parameters and gradients travel [MiB]"},
      {"transport", choice(ps.transport, {"auto", "two_sided", "rma"}),
       "messages, or access to servers' memory; auto: the faster one, measured at the start", false,
       InFirstFile::as_comment},
      {"mode",
       choice(ps.mode, {"sync", "async", "ssp", "modified", "lag_cap", "dana", "dc", "dc_adaptive",
                        "gap_aware", "delayed_sync", "softsync", "backup"}),
       "when gradients are applied, and how; section advanced has its parts", false,
       InFirstFile::yes},
      {"staleness", part(ps.staleness, at_least(0)),
       "of gate ssp: steps by which a worker may be ahead of the slowest; ssp, modified: 2"},
      {"count", part(ps.count, at_least(1)),
       "of gate softsync: gradients that make an update; softsync: the number of workers"},
      {"backup", part(ps.backup, at_least(1)),
       "of gate backup: workers that are not waited for; backup: 1"},
      {"lag_cap", part(ps.lag_cap, at_least(0)),
       "of gradients that are applied as they are; 0: none; lag_cap: the number of workers"},
      {"dc_lambda", if_given(ps.dc_lambda, [](double& x) { return number(x, at_least(0)); }),
       "of g + lambda g g (p - p_base); dc: 0.04, dc_adaptive: 2"},
      {"delay", part(ps.delay, between(0, 1)),
       "of gate bsp: versions by which workers are behind; delayed_sync: 1"},
      {"micro_batches", integer(ps.micro_batches, at_least(1)),
       "forward and backward passes for one push"},
  };
  std::ranges::move(block_code_keys(ps.compression), std::back_inserter(keys));
  std::ranges::move(keys_of_other_sections(ps), std::back_inserter(keys));
  return keys;
}

void derive_defaults(PsConfig& config, GivenKeys const& given) {
  if (config.server_ranks == ServerPlacement::listed && !given("servers"))
    config.servers = static_cast<int>(config.listed_ranks.size());
}

std::vector<std::pair<std::string, PsConfig>> alternatives(PsConfig const& given) {
  PsConfig sync{.servers = given.servers,
                .chunk_mb = given.chunk_mb,
                .transport = given.transport,
                .compression = given.compression,
                .micro_batches = given.micro_batches};
  auto async = sync;
  async.mode = PsMode::async;
  return {{"ps sync", sync}, {"ps async", async}};
}

}  // namespace stratagem
