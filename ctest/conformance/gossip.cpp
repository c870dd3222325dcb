#include <gtest/gtest.h>

#include "comm/factory.hpp"
#include "conformance/expected.hpp"
#include "conformance/local_workers.hpp"

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
      auto expected = world().rank() == 0 ? digest_alone(training) : "";
      world().broadcast(expected, 0);
      auto const communicator = make_communicator({}, discover_process(world()), world(), nullptr);
      EXPECT_EQ(digest_on(training, *communicator), expected) << "on rank " << world().rank();
    }
}

}  // namespace
}  // namespace stratagem::test
