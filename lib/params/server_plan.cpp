#include "params/server_plan.hpp"

#include <algorithm>
#include <numeric>

#include "base/arithmetic.hpp"
#include "base/error.hpp"
#include "base/hash/hash.hpp"
#include "base/largest_first.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t page_bytes = 4096;

int place_in(std::vector<int> const& ranks, int rank) {
  auto const found = std::ranges::lower_bound(ranks, rank);
  return found != ranks.end() && *found == rank ? static_cast<int>(found - ranks.begin()) : -1;
}

std::vector<ServerChunk> cut(std::int64_t size, std::int64_t chunk) {
  std::vector<ServerChunk> chunks;
  for (auto end = size; end > 0; end = chunks.back().range.begin)
    chunks.push_back({static_cast<int>(chunks.size()), {(end - 1) / chunk * chunk, end}});
  return chunks;
}

void deal_out(std::vector<ServerChunk>& chunks, std::vector<std::int64_t>& loads) {
  std::vector<std::int64_t> sizes;
  for (auto const& chunk : chunks) sizes.push_back(chunk.range.size());
  auto const server_of = deal_largest_first(sizes, loads.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].server = static_cast<int>(server_of[i]);
    loads[server_of[i]] += sizes[i];
  }
}

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

int Roles::worker_of(int rank) const {
  return place_in(workers, rank);
}

int Roles::server_of(int rank) const {
  return place_in(servers, rank);
}

Roles assign_roles(int ranks, int servers, ServerPlacement placement,
                   std::vector<int> const& listed) {
  if (servers < 1)
    throw Error(ExitCode::usage, str("strategy.servers: ", servers), "no rank would own the model",
                "take 1 or more");
  if (servers >= ranks)
    throw Error(ExitCode::usage, str("strategy.servers: ", servers, " of ", ranks, " ranks"),
                "no rank is left for workers",
                str("start ", servers + 1, " ranks or more, or take fewer servers"));
  if (placement == ServerPlacement::listed) check_list(ranks, servers, listed);
  Roles roles;
  for (int server = 0; server < servers; ++server)
    roles.servers.push_back(server_rank(ranks, servers, server, placement, listed));
  std::ranges::sort(roles.servers);
  for (int rank = 0; rank < ranks; ++rank)
    if (roles.server_of(rank) < 0) roles.workers.push_back(rank);
  return roles;
}

std::vector<ServerChunk> ServerPlan::chunks_of(int server) const {
  std::vector<ServerChunk> own;
  std::ranges::copy_if(chunks, std::back_inserter(own),
                       [server](ServerChunk const& chunk) { return chunk.server == server; });
  return own;
}

double ServerPlan::imbalance() const {
  auto const sum = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  return static_cast<double>(std::ranges::max(loads)) * static_cast<double>(loads.size()) /
         static_cast<double>(sum);
}

std::uint64_t ServerPlan::hash() const {
  Hash hash;
  for (auto const rank : roles.servers) hash.add(static_cast<std::uint64_t>(rank));
  hash.add(roles.workers.size());
  for (auto const& chunk : chunks)
    hash.add(static_cast<std::uint64_t>(chunk.range.begin))
        .add(static_cast<std::uint64_t>(chunk.range.end))
        .add(static_cast<std::uint64_t>(chunk.server));
  return hash.value();
}

ServerPlan make_server_plan(ParameterLayout const& layout, Roles roles, std::int64_t chunk_bytes,
                            std::int64_t element_size) {
  auto const page = page_bytes / element_size;
  auto const chunk = round_up(std::max<std::int64_t>(chunk_bytes / element_size, 1), page);
  ServerPlan plan{.roles = std::move(roles), .chunks = cut(layout.size(), chunk)};
  auto const servers = plan.roles.servers.size();
  if (plan.chunks.size() < servers)
    throw Error(ExitCode::usage,
                str("strategy.servers: ", servers, ", but the parameters are ", plan.chunks.size(),
                    plan.chunks.size() == 1 ? " chunk" : " chunks"),
                "a server without a chunk would do nothing",
                "take fewer servers or a smaller strategy.chunk_mb");
  if (static_cast<std::int64_t>(plan.chunks.size()) > max_chunks)
    throw Error(ExitCode::usage, str("strategy.chunk_mb makes ", plan.chunks.size(), " chunks"),
                str(max_chunks, " can be told apart"), "make strategy.chunk_mb larger");
  plan.shards.resize(servers);
  plan.loads.resize(servers);
  deal_out(plan.chunks, plan.loads);
  for (auto& piece : plan.chunks) {
    auto& shard = plan.shards[static_cast<std::size_t>(piece.server)];
    piece.offset = shard;
    shard += round_up(piece.range.size(), page);
  }
  return plan;
}

}  // namespace stratagem
