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

}  // namespace

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
  hash.add(static_cast<std::uint64_t>(servers()));
  for (auto const& chunk : chunks)
    hash.add(static_cast<std::uint64_t>(chunk.range.begin))
        .add(static_cast<std::uint64_t>(chunk.range.end))
        .add(static_cast<std::uint64_t>(chunk.server));
  return hash.value();
}

ServerPlan make_server_plan(ParameterLayout const& layout, int servers, std::int64_t chunk_bytes,
                            std::int64_t element_size) {
  auto const page = page_bytes / element_size;
  auto const chunk = round_up(std::max<std::int64_t>(chunk_bytes / element_size, 1), page);
  ServerPlan plan{.chunks = cut(layout.size(), chunk)};
  auto const count = static_cast<std::size_t>(servers);
  if (plan.chunks.size() < count)
    throw Error(ExitCode::usage,
                str("strategy.servers: ", servers, ", but the parameters are ", plan.chunks.size(),
                    plan.chunks.size() == 1 ? " chunk" : " chunks"),
                "a server without a chunk would do nothing",
                "take fewer servers or a smaller strategy.chunk_mb");
  if (static_cast<std::int64_t>(plan.chunks.size()) > max_chunks)
    throw Error(ExitCode::usage, str("strategy.chunk_mb makes ", plan.chunks.size(), " chunks"),
                str(max_chunks, " can be told apart"), "make strategy.chunk_mb larger");
  plan.shards.resize(count);
  plan.loads.resize(count);
  deal_out(plan.chunks, plan.loads);
  for (auto& piece : plan.chunks) {
    auto& shard = plan.shards[static_cast<std::size_t>(piece.server)];
    piece.offset = shard;
    shard += round_up(piece.range.size(), page);
  }
  return plan;
}

}  // namespace stratagem
