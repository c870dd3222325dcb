#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategy/fedavg/secure/client.hpp"
#include "strategy/fedavg/secure/server.hpp"

namespace stratagem {
namespace {

using Words = std::vector<std::uint32_t>;

/// The protocol of secure sums, without ranks.
class SecureSum : public testing::Test {
 protected:
  void SetUp() override {
    if (!crypto::available()) GTEST_SKIP() << "needs OpenSSL";
  }
};

constexpr std::int64_t round_number = 41;

/// All clients of a round, up to where they have told the server their masked inputs.
struct Round {
  Round(Neighbourhood const& hood, std::size_t numel = 50) : neighbourhood(hood) {
    for (int place = 0; place < hood.parties(); ++place) {
      clients.emplace_back(hood, round_number, place);
      keys.push_back(clients.back().advertise());
      CounterRandom const random(3, "input");
      auto& input = inputs.emplace_back(numel);
      for (std::size_t i = 0; i < numel; ++i)
        input[i] = random.word(i, static_cast<std::uint64_t>(place)) >> 20;
    }
    for (auto& client : clients) {
      auto const own = client.share(keys);
      shares.insert(shares.end(), own.begin(), own.end());
    }
  }

  void receive() {
    for (auto& client : clients) client.receive(shares);
  }
  Answers answers(std::set<int> const& lost) const {
    Answers found;
    for (int place = 0; place < neighbourhood.parties(); ++place)
      (lost.contains(place) ? found.lost : found.living).push_back(place);
    return found;
  }
  /// Over those who answer: of what they have, or of what they send.
  Words sum(Answers const& answered, bool masked) const {
    Words total(inputs.front().size());
    for (int const place : answered.living) {
      auto input = inputs[static_cast<std::size_t>(place)];
      if (masked) clients[static_cast<std::size_t>(place)].mask(input);
      std::ranges::transform(total, input, total.begin(), std::plus<>());
    }
    return total;
  }
  Unmasking asked(Answers const& answered) {
    Unmasking server(neighbourhood, round_number, keys, answered);
    for (int const place : answered.living)
      for (auto& share : clients[static_cast<std::size_t>(place)].reveal(answered))
        server.take(std::move(share));
    return server;
  }
  /// What the server ends with.
  Words unmasked(Answers const& answered, int but_of = -1) {
    auto const server = asked(answered);
    auto total = sum(answered, true);
    for (int place = 0; place < neighbourhood.parties(); ++place)
      if (place != but_of) server.remove_masks(place, total);
    return total;
  }

  Neighbourhood neighbourhood;
  std::vector<SecureClient> clients;
  std::vector<PublicKeys> keys;
  std::vector<Words> inputs;
  std::vector<SealedShares> shares;
};

void expect_refused(ExitCode code, std::string const& words, std::function<void()> const& act) {
  try {
    act();
    ADD_FAILURE() << "not refused: " << words;
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST_F(SecureSum, ARingHasMembersOnBothSides) {
  Neighbourhood const ring(12, 4, 0), all(10, 0, 0), odd(4, 0, 3);
  EXPECT_EQ(ring.members(), 5);
  EXPECT_EQ(ring.threshold(), 4);
  EXPECT_EQ(all.members(), 10);
  EXPECT_EQ(all.threshold(), 7);
  for (auto const& hood : {ring, all, odd})
    for (int owner = 0; owner < hood.parties(); ++owner) {
      std::set<int> members;
      for (int point = 1; point <= hood.members(); ++point) {
        int const holder = hood.member(owner, point);
        EXPECT_EQ(hood.point_of(owner, holder), point);
        EXPECT_GT(hood.point_of(holder, owner), 0) << "both or none";
        members.insert(holder);
      }
      EXPECT_EQ(members.size(), static_cast<std::size_t>(hood.members()));
      EXPECT_TRUE(members.contains(owner));
      for (int other = 0; other < hood.parties(); ++other)
        EXPECT_EQ(hood.point_of(owner, other) > 0, members.contains(other));
    }
  EXPECT_EQ(ring.point_of(0, 11), 2);
  EXPECT_EQ(ring.point_of(0, 3), 0);
}

TEST_F(SecureSum, EqualsThePlainSumWithTenClientsAndThreeLost) {
  for (auto const& lost : {std::set<int>{}, {0}, {9}, {0, 1, 2}, {3, 6, 9}, {0, 5, 9}}) {
    Round round({10, 0, 0});
    round.receive();
    auto const answered = round.answers(lost);
    EXPECT_NE(round.sum(answered, true), round.sum(answered, false));
    EXPECT_EQ(round.unmasked(answered), round.sum(answered, false)) << lost.size() << " lost";
  }
}

/// All losses of five clients: as long as the threshold answers, the sum is theirs.
TEST_F(SecureSum, EqualsThePlainSumForEveryLossOrIsRefused) {
  for (unsigned subset = 0; subset < 31; ++subset) {
    std::set<int> lost;
    for (int place = 0; place < 5; ++place)
      if (subset >> place & 1) lost.insert(place);
    Round round({5, 0, 3}, 7);
    round.receive();
    auto const answered = round.answers(lost);
    if (lost.size() <= 2)
      EXPECT_EQ(round.unmasked(answered), round.sum(answered, false)) << subset;
    else
      expect_refused(ExitCode::usage, "stays masked", [&] { round.unmasked(answered); });
  }
}

/// As many may be lost as leave each neighbourhood its threshold, wherever they are.
TEST_F(SecureSum, ARingNeedsItsThresholdAroundEachClient) {
  for (auto const& lost : {std::set<int>{}, {0}, {3, 8}, {2, 7}, {0, 5}}) {
    Round round({12, 4, 0});
    round.receive();
    auto const answered = round.answers(lost);
    EXPECT_EQ(round.unmasked(answered), round.sum(answered, false));
  }
  Round round({12, 4, 0});
  round.receive();
  expect_refused(ExitCode::usage, "lower experiment.lost_clients", [&] {
    round.unmasked(round.answers({4, 5}));
  });
}

/// Over the 256 values of a byte. Of uniform bytes it is 255 on average, and beyond 420 less than
/// once in 10^10 times.
double chi_square(Words const& words) {
  std::array<double, 256> count{};
  for (auto const word : words)
    for (int byte = 0; byte < 4; ++byte) ++count[word >> 8 * byte & 255];
  double const expected = 4.0 * static_cast<double>(words.size()) / 256;
  double sum = 0;
  for (double const found : count) sum += (found - expected) * (found - expected) / expected;
  return sum;
}

TEST_F(SecureSum, WithOneMaskUnknownItsBytesAreUniform) {
  for (int const hidden : {0, 2, 4, 5}) {
    Round round({6, 0, 4}, 100000);
    round.receive();
    auto const answered = round.answers({2});
    EXPECT_LT(chi_square(round.unmasked(answered, hidden)), 420) << hidden;
    EXPECT_GT(chi_square(round.sum(answered, false)), 1e5) << "the test can fail";
  }
}

/// The server sees neither of two rounds' inputs in their difference: keys are new in each.
TEST_F(SecureSum, MasksAreNewInEachRound) {
  Neighbourhood const hood(3, 0, 2);
  Round first(hood, 100000), second(hood, 100000);
  for (std::size_t place = 0; place < 3; ++place) {
    auto one = first.inputs[place], other = second.inputs[place];
    ASSERT_EQ(one, other);
    first.clients[place].mask(one);
    second.clients[place].mask(other);
    EXPECT_LT(chi_square(one), 420);
    std::ranges::transform(one, other, one.begin(), std::minus<>());
    EXPECT_LT(chi_square(one), 420);
  }
}

TEST_F(SecureSum, ForgedSharesAreRefused) {
  for (std::size_t byte = 0; byte < SealedShares::sealed_bytes; byte += 7) {
    Round round({4, 0, 3});
    round.shares[5].sealed[byte] ^= 1;
    expect_refused(ExitCode::bad_data, "forged or damaged", [&] { round.receive(); });
  }
  // To another than it was sealed for, from another, and of another round.
  Round round({4, 0, 3});
  std::swap(round.shares[0].sealed, round.shares[1].sealed);
  expect_refused(ExitCode::bad_data, "forged or damaged", [&] { round.receive(); });
  Round other({4, 0, 3}), later({4, 0, 3});
  other.shares[0] = later.shares[0];
  expect_refused(ExitCode::bad_data, "forged or damaged", [&] { other.receive(); });
}

/// A second message to the same would be sealed with the nonce of the first.
TEST_F(SecureSum, NobodySharesTwice) {
  Round round({4, 0, 3});
  expect_refused(ExitCode::bad_data, "shares nothing", [&] { round.clients[1].share(round.keys); });
}

TEST_F(SecureSum, SharesThatComeTwiceOrNotAtAllAreRefused) {
  Round twice({4, 0, 3}), missing({4, 0, 3}), stranger({12, 4, 0}), nobody({4, 0, 3});
  twice.shares.push_back(twice.shares[3]);
  expect_refused(ExitCode::bad_data, "there are some already", [&] { twice.receive(); });
  missing.shares.erase(missing.shares.begin());
  expect_refused(ExitCode::bad_data, "has sent no shares", [&] { missing.receive(); });
  auto far = stranger.shares[0];
  far.to = (far.from + 6) % 12;
  stranger.shares.push_back(far);
  expect_refused(ExitCode::bad_data, "share nothing", [&] { stranger.receive(); });
  nobody.shares[0].from = -5;
  expect_refused(ExitCode::bad_data, "share nothing", [&] { nobody.receive(); });
}

TEST_F(SecureSum, KeysThatComeTwiceOrAreOfLowOrderAreRefused) {
  Neighbourhood const hood(3, 0, 2);
  std::vector<SecureClient> clients;
  std::vector<PublicKeys> keys;
  for (int place = 0; place < 3; ++place)
    keys.push_back(clients.emplace_back(hood, round_number, place).advertise());
  auto const refuse = [&](std::string const& words, auto const& change) {
    auto changed = keys;
    change(changed);
    SecureClient client(hood, round_number, 0);
    expect_refused(ExitCode::bad_data, words, [&] {
      client.share(changed);
      Words input(1);
      client.mask(input);
    });
  };
  refuse("client 1 has keys twice", [](auto& k) { k[2].client = 1; });
  refuse("client 2 has no keys", [](auto& k) { k.pop_back(); });
  refuse("keys of client 3 in a round of 3", [](auto& k) { k[2].client = 3; });
  refuse("public key of client 1 is refused", [](auto& k) { k[1].sealing = {}; });
  refuse("public key of client 2 is refused", [](auto& k) { k[2].masking = {1}; });
}

TEST_F(SecureSum, NobodyRevealsBothSecretsOfAClient) {
  Round round({4, 0, 3});
  round.receive();
  auto const both = Answers{.living = {0, 1, 2, 3}, .lost = {2}};
  expect_refused(ExitCode::bad_data, "client 2 is asked for as living and as lost",
                 [&] { round.clients[0].reveal(both); });
  expect_refused(ExitCode::bad_data, "client 3 is neither living nor lost", [&] {
    round.clients[1].reveal({.living = {0, 1, 2}});
  });
  static_cast<void>(round.clients[2].reveal(round.answers({})));
  expect_refused(ExitCode::bad_data, "both secrets",
                 [&] { round.clients[2].reveal(round.answers({1})); });
  expect_refused(ExitCode::bad_data, "the threshold is 3", [&] {
    round.clients[3].reveal(round.answers({0, 1}));
  });
  // Nor after a refusal.
  expect_refused(ExitCode::bad_data, "both secrets",
                 [&] { round.clients[0].reveal(round.answers({})); });
}

TEST_F(SecureSum, TheServerTakesTheSharesItAskedForAndNoOthers) {
  Round round({5, 0, 3});
  round.receive();
  auto const answered = round.answers({4});
  auto const shares = [&](int holder) {
    Round same({5, 0, 3});
    same.receive();
    return same.clients[static_cast<std::size_t>(holder)].reveal(answered);
  };
  auto const refuse = [&](std::string const& words, auto const& change) {
    Unmasking server(round.neighbourhood, round_number, round.keys, answered);
    auto share = std::move(shares(1)[1]);  // of client 0
    change(share);
    expect_refused(ExitCode::bad_data, words, [&] { server.take(std::move(share)); });
  };
  refuse("there is no such client", [](auto& s) { s.holder = 5; });
  refuse("there is no such client", [](auto& s) { s.owner = -1; });
  refuse("who holds it is lost", [](auto& s) { s.holder = 4; });
  refuse("which is not its own", [](auto& s) { ++s.share.point; });
  refuse("another secret", [](auto& s) { s.kind = SecretKind::mask_key; });
  refuse("another secret", [](auto& s) { s.kind = SecretKind::none; });
  refuse("another secret", [](auto& s) {
    s.owner = 4;
    s.share.point = static_cast<std::uint8_t>(Neighbourhood(5, 0, 3).point_of(4, s.holder));
  });
  Unmasking server(round.neighbourhood, round_number, round.keys, answered);
  auto first = shares(1), again = shares(1);
  server.take(std::move(first[1]));
  expect_refused(ExitCode::bad_data, "there is one already",
                 [&] { server.take(std::move(again[1])); });
}

TEST_F(SecureSum, WrongSharesOfALostClientsKeyAreRefused) {
  Round round({5, 0, 3});
  round.receive();
  auto const answered = round.answers({4});
  Unmasking server(round.neighbourhood, round_number, round.keys, answered);
  for (int const place : answered.living)
    for (auto& share : round.clients[static_cast<std::size_t>(place)].reveal(answered)) {
      share.share.value.bytes()[7] ^= 1;
      server.take(std::move(share));
    }
  Words sum(3);
  expect_refused(ExitCode::bad_data, "are not of its key", [&] { server.remove_masks(4, sum); });
}

TEST_F(SecureSum, MessagesAreReadAsTheyWereWritten) {
  Round round({3, 0, 2});
  std::array<std::uint8_t, PublicKeys::bytes> keys{};
  round.keys[2].write(keys);
  auto const read = PublicKeys::read(keys);
  EXPECT_EQ(read.client, 2);
  EXPECT_EQ(read.sealing, round.keys[2].sealing);
  EXPECT_EQ(read.masking, round.keys[2].masking);
  std::array<std::uint8_t, SealedShares::bytes> sealed{};
  for (auto& shares : round.shares) {
    shares.write(sealed);
    shares = SealedShares::read(sealed);
  }
  round.receive();
  auto const answered = round.answers({});
  Unmasking server(round.neighbourhood, round_number, round.keys, answered);
  std::array<std::uint8_t, RevealedShare::bytes> revealed{};
  for (auto& client : round.clients)
    for (auto const& share : client.reveal(answered)) {
      share.write(revealed);
      server.take(RevealedShare::read(revealed));
    }
  auto sum = round.sum(answered, true);
  for (int place = 0; place < 3; ++place) server.remove_masks(place, sum);
  EXPECT_EQ(sum, round.sum(answered, false));
  revealed[8] = 3;
  expect_refused(ExitCode::bad_data, "no known secret",
                 [&] { static_cast<void>(RevealedShare::read(revealed)); });
}

}  // namespace
}  // namespace stratagem
