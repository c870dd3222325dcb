#include "strategy/gossip/gossip_config.hpp"

#include <array>

#include "strategy/shared/shared_keys.hpp"

namespace stratagem {
namespace {

constexpr std::array<std::string_view, 4> graph_names{"ring", "exponential", "complete", "star"};

}  // namespace

Keys keys_of(GossipConfig& gossip) {
  return {
      {"workers", integer(gossip.workers, between(0, 1024)),
       "of which each rank plays equally many, in turn; 0: one on each rank", false,
       InFirstFile::as_comment},
      {"graph", choice(gossip.graph, {graph_names.begin(), graph_names.end()}),
       "its neighbours: one on each side, one 1, 2, 4, ... away in turn, all, or worker 0", false,
       InFirstFile::yes},
      {"push_sum", flag(gossip.push_sum),
       "mixes a weight along and divides parameters by it (SGP); a star needs it", false,
       InFirstFile::as_comment},
      {"mix_every", integer(gossip.mix_every, between(1, 1000000)),
       "steps from one mixing to the next", false, InFirstFile::as_comment},
      micro_batches_key(gossip.micro_batches),
  };
}

std::vector<std::pair<std::string, GossipConfig>> alternatives(GossipConfig const& given) {
  return {{"gossip", given}};
}

std::string_view name_of(Graph graph) {
  return graph_names[static_cast<std::size_t>(graph)];
}

}  // namespace stratagem
