#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include <ATen/ATen.h>

#include "data/clients.hpp"

/// clients_program SEED CLIENTS PER_ROUND SPLIT ALPHA ROUNDS SHARE LABELS: the training samples
/// that clients use, a line for each client of each round: its number, how many samples it has, and
/// those of its share. LABELS: a file with the label of each sample.
int main(int argc, char** argv) {
  using namespace stratagem;
  if (argc != 9) return 2;
  auto const seed = std::strtoull(argv[1], nullptr, 10);
  auto const* const split = std::ranges::find(split_names, argv[4]);
  if (split == split_names.end()) return 2;
  ClientConfig const config{.clients = std::atoi(argv[2]),
                            .per_round = std::atoi(argv[3]),
                            .split = static_cast<Split>(split - split_names.begin()),
                            .alpha = std::atof(argv[5])};
  auto const share = std::atoll(argv[7]);
  std::ifstream file(argv[8]);
  std::vector<std::int64_t> labels(std::istream_iterator<std::int64_t>(file), {});
  auto const count = static_cast<std::int64_t>(labels.size());
  ClientRounds const rounds(
      config, seed,
      ClientSplit(config, seed, count, at::from_blob(labels.data(), {count}, at::kLong)));
  for (std::int64_t round = 0; round < std::atoll(argv[6]); ++round) {
    auto const drawn = rounds.drawn(round);
    auto const all = rounds.samples(round, {0, share * config.per_round}, share * config.per_round);
    auto next = all.begin();
    for (auto const& client : drawn) {
      std::printf("%d %lld", client.number, static_cast<long long>(client.samples));
      for (std::int64_t i = 0; i < share; ++i)
        std::printf(" %lld", static_cast<long long>(*next++));
      std::printf("\n");
    }
  }
}
