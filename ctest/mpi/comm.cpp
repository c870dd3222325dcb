#include "mpi/comm.hpp"

#include <chrono>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "support/world.hpp"

namespace stratagem::mpi {
namespace {

using namespace std::chrono_literals;

Comm const& world() {
  return test::world();
}

TEST(Comm, BroadcastCarriesAnyTextFromAnyRoot) {
  for (int root = 0; root < world().size(); ++root)
    for (std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
      std::string const sent(length, static_cast<char>('a' + root));
      std::string text = world().rank() == root ? sent : "something longer than the text sent";
      world().broadcast(text, root);
      EXPECT_EQ(text, sent);
    }
}

TEST(Comm, AllGatherKeepsRankOrderAndLengths) {
  auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 1000), 'x') + "end";
  };
  auto const texts = world().all_gather(text_of(world().rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(world().size()));
  for (int rank = 0; rank < world().size(); ++rank)
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  auto const empty = world().all_gather("");
  EXPECT_EQ(join(empty, ""), "");
}

TEST(Comm, MessagesArriveInOrderPerPeerAndTag) {
  int const right = (world().rank() + 1) % world().size();
  int const left = (world().rank() + world().size() - 1) % world().size();
  constexpr std::size_t messages = 4, length = 100'000;  // beyond any eager limit
  std::vector<std::vector<std::byte>> sent, received;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < messages; ++i) {
    sent.emplace_back(length, std::byte(10 * world().rank() + static_cast<int>(i)));
    received.emplace_back(length);
  }
  for (std::size_t i = 0; i < messages; ++i) {
    int const tag = i % 2 == 0 ? 0 : Comm::max_tag;
    requests.push_back(world().receive(received[i], left, tag));
    requests.push_back(world().send(sent[i], right, tag));
  }
  while (!test_all(requests)) {
  }
  for (auto& request : requests) request.wait();  // nothing is left to wait for
  for (std::size_t i = 0; i < messages; ++i)
    EXPECT_EQ(received[i],
              std::vector<std::byte>(length, std::byte(10 * left + static_cast<int>(i))));
}

/// Messages both ways that need an answer of their receiver before their rest follows, while the
/// peer calls nothing: a rank has to keep more answers and rests than Open MPI has room for unless
/// it is told.
TEST(Comm, ManyAnswersWaitAtOnce) {
  constexpr std::size_t messages = 1000, length = 4096;
  int const rank = world().rank();
  std::vector<std::byte> sent(messages * length, std::byte(1 + rank)), received(sent.size());
  auto const part = [&](std::vector<std::byte>& all, std::size_t i) {
    return std::span(all).subspan(i * length, length);
  };
  { std::vector<std::string> const used(1000, std::string(1000, 'x')); }  // no memory is new
  std::vector<Request> requests;
  world().barrier();
  for (std::size_t i = 0; rank < 2 && i < messages; ++i)
    requests.push_back(world().send(part(sent, i), 1 - rank, 0));
  for (int turn = 0; turn < 2; ++turn) {
    std::this_thread::sleep_for(200ms);
    if (turn != rank) continue;
    static_cast<void>(test_all(requests));
    for (std::size_t i = 0; i < messages; ++i)
      requests.push_back(world().receive(part(received, i), 1 - rank, 0));
  }
  auto const deadline = std::chrono::steady_clock::now() + 20s;
  while (!test_all(requests) && std::chrono::steady_clock::now() < deadline) {
  }
  ASSERT_TRUE(test_all(requests)) << "messages are lost";
  if (rank < 2) {
    EXPECT_EQ(received, std::vector<std::byte>(received.size(), std::byte(2 - rank)));
  }
  world().barrier();
}

TEST(Comm, DuplicatesDoNotMixMessages) {
  auto const other = world().duplicate();
  int const right = (world().rank() + 1) % world().size();
  int const left = (world().rank() + world().size() - 1) % world().size();
  std::byte const first{1}, second{2};
  std::byte from_world{}, from_other{};
  auto a = world().send({&first, 1}, right, 5);
  auto b = other.send({&second, 1}, right, 5);
  other.receive({&from_other, 1}, left, 5).wait();
  world().receive({&from_world, 1}, left, 5).wait();
  a.wait();
  b.wait();
  EXPECT_EQ(from_world, first);
  EXPECT_EQ(from_other, second);
}

TEST(Comm, RanksOfOneNodeAreSplitInOrder) {
  auto const node = world().split_node();
  EXPECT_EQ(node.size(), world().size());
  EXPECT_EQ(node.rank(), world().rank());
  node.barrier();
}

TEST(Comm, LibraryAllReduceSums) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), static_cast<float>(world().rank()));
  world().library_all_reduce(values);
  auto const ranks = static_cast<float>(world().size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], ranks * static_cast<float>(i) + ranks * (ranks - 1) / 2);
}

TEST(Comm, TagsBeyondTheBoundAreABug) {
  std::byte byte{};
  EXPECT_THROW(world().send({&byte, 1}, 0, Comm::max_tag + 1), std::logic_error);
  EXPECT_THROW(world().receive({&byte, 1}, 0, -1), std::logic_error);
}

}  // namespace
}  // namespace stratagem::mpi
