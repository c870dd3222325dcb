#include "data/clients.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "data/loader.hpp"
#include "data/tiny_dataset.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t samples = 1000, classes = 10;

/// Of sample i: i mod 10.
at::Tensor labels() {
  return at::arange(samples).remainder(classes);
}

ClientSplit split_of(ClientConfig const& config, std::uint64_t seed = 1) {
  return {config, seed, samples, config.needs_labels() ? labels() : at::Tensor()};
}

std::vector<ClientConfig> all_splits() {
  return {{.clients = 30, .split = Split::iid},
          {.clients = 30, .split = Split::shards},
          {.clients = 30, .split = Split::dirichlet, .alpha = 1},
          {.clients = 7, .split = Split::dirichlet, .alpha = 0.3},
          {.clients = 1, .split = Split::dirichlet}};
}

std::string refusal(ClientConfig const& config, std::int64_t count) {
  try {
    ClientSplit const split(config, 1, count, at::zeros({count}, at::kLong));
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "not refused";
}

TEST(Clients, EverySampleIsOneClientsAndEveryClientHasSome) {
  for (auto const& config : all_splits()) {
    auto const split = split_of(config);
    ASSERT_EQ(split.clients(), config.clients);
    std::vector<std::int64_t> all;
    for (int client = 0; client < split.clients(); ++client) {
      auto const own = split.of(client);
      EXPECT_FALSE(own.empty());
      EXPECT_TRUE(std::ranges::is_sorted(own));
      all.insert(all.end(), own.begin(), own.end());
    }
    std::ranges::sort(all);
    std::vector<std::int64_t> expected(samples);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected) << name_of(config.split) << " of " << config.clients;
  }
}

TEST(Clients, ASplitDependsOnTheSeedAlone) {
  for (auto const& config : all_splits()) {
    EXPECT_EQ(split_of(config).hash(), split_of(config).hash());
    if (config.clients == 1) continue;
    EXPECT_NE(split_of(config).hash(), split_of(config, 2).hash());
  }
}

TEST(Clients, IidClientsHaveEquallyManySamples) {
  auto const spread = split_of({.clients = 30}).samples();
  EXPECT_EQ(spread.least, 33);
  EXPECT_EQ(spread.most, 34);
  EXPECT_EQ(split_of({.clients = 30}).labels().most, 0) << "not looked at";
  EXPECT_EQ(split_of({.clients = 30}).most_samples(3), 3 * 34);
}

/// Two pieces of 10 samples, in labels of 100 each: no piece has two labels.
TEST(Clients, ShardsHaveFewLabels) {
  auto const split = split_of({.clients = 50, .split = Split::shards});
  EXPECT_EQ(split.samples().least, 20);
  EXPECT_EQ(split.samples().most, 20);
  EXPECT_LE(split.labels().most, 2);
  EXPECT_EQ(split.labels().median, 2) << "pieces are mixed";
}

TEST(Clients, ASmallAlphaLeavesFewLabels) {
  auto const of = [](double alpha) {
    return split_of({.clients = 10, .split = Split::dirichlet, .alpha = alpha}).labels().median;
  };
  EXPECT_LE(of(0.1), 7);
  EXPECT_EQ(of(100), classes);
  auto const even = split_of({.clients = 10, .split = Split::dirichlet, .alpha = 1e6}).samples();
  EXPECT_GE(even.least, 98);
  EXPECT_LE(even.most, 102);
}

/// Of Dirichlet(a) over K: mean 1 / K, variance (K - 1) / (K^2 (K a + 1)). With one label and many
/// samples the sizes of clients are the shares; the least alpha would underflow without logarithms.
TEST(Clients, SharesHaveTheMomentsOfTheirDistribution) {
  constexpr int clients = 5, draws = 400;
  constexpr std::int64_t count = 4000;
  for (double const alpha : {0.5, 1.0, 5.0}) {
    double sum = 0, squares = 0;
    int drawn = 0;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
      std::vector<std::int64_t> sizes;
      try {
        ClientSplit const split({.clients = clients, .split = Split::dirichlet, .alpha = alpha},
                                seed, count, at::zeros({count}, at::kLong));
        for (int client = 0; client < clients; ++client)
          sizes.push_back(std::ssize(split.of(client)));
      } catch (Error const&) {
        continue;  // a client without samples, which is rare
      }
      ++drawn;
      for (auto const size : sizes) {
        auto const share = static_cast<double>(size) / count;
        sum += share;
        squares += share * share;
      }
    }
    EXPECT_GT(drawn, draws * 9 / 10);
    double const n = drawn * clients, mean = sum / n, variance = squares / n - mean * mean;
    double const expected = (clients - 1.0) / (clients * clients * (clients * alpha + 1));
    EXPECT_NEAR(mean, 1.0 / clients, 1e-12);
    EXPECT_NEAR(variance / expected, 1, 0.1) << alpha;
  }
}

TEST(Clients, WithoutSamplesAreRefused) {
  EXPECT_NE(refusal({.clients = 11}, 10).find("10 training samples cannot be dealt to 11 clients"),
            std::string::npos);
  EXPECT_NE(refusal({.clients = 6, .split = Split::shards}, 11).find("two pieces each"),
            std::string::npos);
  EXPECT_EQ(refusal({.clients = 10}, 10), "not refused");
  auto const skewed = refusal({.clients = 50, .split = Split::dirichlet, .alpha = 1e-3}, 1000);
  EXPECT_NE(skewed.find("has no sample"), std::string::npos) << skewed;
  EXPECT_NE(skewed.find("larger split_alpha"), std::string::npos) << skewed;
}

ClientRounds rounds_of(ClientConfig const& config, std::uint64_t seed = 1) {
  return {config, seed, split_of(config, seed)};
}

TEST(Clients, ARoundDrawsDifferentOnes) {
  auto const rounds = rounds_of({.clients = 30, .per_round = 10});
  std::map<int, int> times;
  for (std::int64_t round = 0; round < 300; ++round) {
    std::set<int> drawn;
    for (auto const& client : rounds.drawn(round)) {
      EXPECT_EQ(client.samples, std::ssize(rounds.split().of(client.number)));
      drawn.insert(client.number);
      ++times[client.number];
    }
    EXPECT_EQ(drawn.size(), 10U);
  }
  ASSERT_EQ(times.size(), 30U);
  for (auto const& [client, count] : times) EXPECT_NEAR(count, 100, 35) << client;
  auto const all = rounds_of({.clients = 30, .per_round = 30}).drawn(3);
  EXPECT_EQ(std::ssize(all), 30);
}

/// A client with too few samples goes through them again in another order.
TEST(Clients, UseTheirOwnSamplesAlone) {
  for (auto const split : {Split::iid, Split::shards, Split::dirichlet}) {
    constexpr std::int64_t share = 50;  // of a client with 33 or so
    auto const rounds = rounds_of({.clients = 30, .per_round = 6, .split = split, .alpha = 2});
    for (std::int64_t round = 0; round < 5; ++round) {
      auto const drawn = rounds.drawn(round);
      auto const used = rounds.samples(round, {0, 6 * share}, 6 * share);
      ASSERT_EQ(std::ssize(used), 6 * share);
      for (std::int64_t place = 0; place < 6; ++place) {
        auto const own = rounds.split().of(drawn[static_cast<std::size_t>(place)].number);
        std::map<std::int64_t, std::int64_t> times;
        for (std::int64_t i = 0; i < share; ++i)
          ++times[used[static_cast<std::size_t>(place * share + i)]];
        for (auto const& [sample, count] : times) {
          EXPECT_TRUE(std::ranges::binary_search(own, sample)) << sample;
          EXPECT_LE(count, share / std::ssize(own) + 1) << "passes go through all";
          EXPECT_GE(count, share / std::ssize(own));
        }
      }
      EXPECT_NE(used, rounds.samples(round + 1, {0, 6 * share}, 6 * share));
    }
  }
}

TEST(Clients, PartsOfARankAreThoseOfTheWhole) {
  auto const rounds = rounds_of({.clients = 30, .per_round = 6});
  auto const whole = rounds.samples(4, {0, 240}, 240);
  for (int const ranks : {2, 3, 6}) {
    std::vector<std::int64_t> joined;
    for (int rank = 0; rank < ranks; ++rank) {
      auto const part = rounds.samples(4, RankSlice{rank, ranks}.of_batch(240), 240);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, whole) << ranks;
  }
}

/// What a rank is handed: labels of the samples that ClientRounds names, and who they belong to.
TEST(Clients, AreServedByTheLoader) {
  auto const dataset = test::tiny_dataset(60, 1, 8);
  ClientConfig const config{.clients = 6, .per_round = 3, .split = Split::shards};
  auto const rounds = std::make_shared<ClientRounds const>(
      config, 5, ClientSplit(config, 5, 60, dataset.train.labels));
  for (int rank = 0; rank < 3; ++rank) {
    Loader loader(
        dataset, {.channels = 1, .size = 8},
        {.seed = 5, .global_batch = 24, .slice = {rank, 3}, .end_step = 4, .clients = rounds},
        nullptr);
    for (std::int64_t step = 0; step < 4; ++step) {
      auto const batch = *loader.next();
      auto const used = rounds->samples(step, {8 * rank, 8 * rank + 8}, 24);
      ASSERT_EQ(batch.size(), 8);
      ASSERT_EQ(batch.clients.size(), 3U);
      EXPECT_EQ(batch.clients[1].number, rounds->drawn(step)[1].number);
      for (std::int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(batch.labels[i].item<std::int64_t>(), used[static_cast<std::size_t>(i)] % 10);
    }
  }
}

}  // namespace
}  // namespace stratagem
