#include "strategy/ps/server_ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

void check_list(int ranks, int servers, std::vector<int> const& listed) {
  auto sorted = listed;
  std::ranges::sort(sorted);
  bool const twice = std::ranges::adjacent_find(sorted) != sorted.end();
  if (twice || sorted.empty() || sorted.front() < 0 || sorted.back() >= ranks)
    throw Error(ExitCode::usage, "strategy.server_ranks names a rank twice, or one there is not",
                str("there are ranks 0 to ", ranks - 1), "name each server's rank once");
  if (static_cast<int>(listed.size()) != servers)
    throw Error(ExitCode::usage,
                str("strategy.server_ranks names ", listed.size(),
                    " ranks, but strategy.servers is ", servers),
                "each server has one rank", "make the two agree, or leave strategy.servers out");
}

int rank_of(int server, PsConfig const& config, int ranks) {
  switch (config.server_ranks) {
    case ServerPlacement::last:
      return ranks - config.servers + server;
    case ServerPlacement::first:
      return server;
    case ServerPlacement::spread:
      return static_cast<int>(ceil_div(std::int64_t{server + 1} * ranks, config.servers)) - 1;
    case ServerPlacement::listed:
      return config.listed_ranks[static_cast<std::size_t>(server)];
  }
  return 0;
}

}  // namespace

Placement place_servers(PsConfig const& config, int ranks) {
  if (config.servers < 1)
    throw Error(ExitCode::usage, str("strategy.servers: ", config.servers),
                "no rank would own the model", "take 1 or more");
  if (config.servers >= ranks)
    throw Error(ExitCode::usage, str("strategy.servers: ", config.servers, " of ", ranks, " ranks"),
                "no rank is left for workers",
                str("start ", config.servers + 1, " ranks or more, or take fewer servers"));
  if (config.server_ranks == ServerPlacement::listed)
    check_list(ranks, config.servers, config.listed_ranks);
  std::vector<int> servers;
  for (int server = 0; server < config.servers; ++server)
    servers.push_back(rank_of(server, config, ranks));
  std::ranges::sort(servers);
  return {ranks, std::move(servers)};
}

}  // namespace stratagem
