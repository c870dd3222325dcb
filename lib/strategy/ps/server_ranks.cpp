#include "strategy/ps/server_ranks.hpp"

#include <algorithm>
#include <utility>

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

int server_rank(int ranks, int servers, int server, ServerPlacement placement,
                std::vector<int> const& listed) {
  switch (placement) {
    case ServerPlacement::last:
      return ranks - servers + server;
    case ServerPlacement::first:
      return server;
    case ServerPlacement::spread:
      return static_cast<int>(ceil_div(std::int64_t{server + 1} * ranks, servers)) - 1;
    case ServerPlacement::listed:
      return listed[static_cast<std::size_t>(server)];
  }
  return 0;
}

}  // namespace

Placement place_servers(int ranks, int servers, ServerPlacement placement,
                        std::vector<int> const& listed) {
  if (servers < 1)
    throw Error(ExitCode::usage, str("strategy.servers: ", servers), "no rank would own the model",
                "take 1 or more");
  if (servers >= ranks)
    throw Error(ExitCode::usage, str("strategy.servers: ", servers, " of ", ranks, " ranks"),
                "no rank is left for workers",
                str("start ", servers + 1, " ranks or more, or take fewer servers"));
  if (placement == ServerPlacement::listed) check_list(ranks, servers, listed);
  std::vector<int> found;
  for (int server = 0; server < servers; ++server)
    found.push_back(server_rank(ranks, servers, server, placement, listed));
  std::ranges::sort(found);
  return {ranks, std::move(found)};
}

}  // namespace stratagem
