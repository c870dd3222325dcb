#include <gtest/gtest.h>

#include "conformance/expected.hpp"

namespace stratagem::test {
namespace {

constexpr int workers = 12;  // which 1, 2, 3 and 4 ranks share out evenly

TEST(Gossip, EqualsItselfOnOneRankBitForBit) {
  for (auto const& gossip :
       {GossipConfig{.workers = workers},
        GossipConfig{.workers = workers, .graph = Graph::ring, .mix_every = 2},
        GossipConfig{.workers = workers, .graph = Graph::complete, .micro_batches = 2},
        GossipConfig{.workers = workers, .graph = Graph::star, .push_sum = true}})
    for (auto const* model : {"lenet", "tiny_residual", "tiny_odd"}) {
      SCOPED_TRACE(std::string(name_of(gossip.graph)) + " " + model);
      Training const training{.model = model, .strategy = gossip, .steps = 8};
      expect_same_as_on_one_rank(training);
    }
}

}  // namespace
}  // namespace stratagem::test
