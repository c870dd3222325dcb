#include "data/clients.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/hash/hash.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using Parts = std::vector<std::vector<std::int64_t>>;
using Samples = std::span<std::int64_t const>;

constexpr std::int64_t pieces_of_client = 2;  // of Split::shards

/// In random order.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, char const* stream) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  shuffle(CounterRandom(seed, stream), 0, order);
  return order;
}

/// The `index`-th of `count` pieces of almost the same size.
Samples piece_of(Samples all, std::int64_t index, std::int64_t count) {
  auto const begin = std::ssize(all) * index / count, end = std::ssize(all) * (index + 1) / count;
  return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

Parts deal_evenly(Samples order, int clients) {
  Parts parts;
  for (int client = 0; client < clients; ++client) {
    auto const own = piece_of(order, client, clients);
    parts.emplace_back(own.begin(), own.end());
  }
  return parts;
}

Parts deal_shards(std::vector<std::int64_t> order, int clients, std::uint64_t seed,
                  Samples labels) {
  std::ranges::stable_sort(order, {},
                           [&](auto sample) { return labels[static_cast<std::size_t>(sample)]; });
  auto const count = pieces_of_client * clients;
  auto const pieces = shuffled(count, seed, "pieces of clients");
  Parts parts(static_cast<std::size_t>(clients));
  for (std::int64_t i = 0; i < count; ++i) {
    auto const piece = piece_of(order, pieces[static_cast<std::size_t>(i)], count);
    auto& part = parts[static_cast<std::size_t>(i / pieces_of_client)];
    part.insert(part.end(), piece.begin(), piece.end());
  }
  return parts;
}

/// The logarithm of a draw from Gamma(alpha, 1): Marsaglia and Tsang, "A simple method for
/// generating gamma variables", 2000, for alpha + 1, times U^(1 / alpha). In logarithms, because
/// draws for a small alpha underflow.
double log_gamma_draw(CounterRandom const& random, std::uint64_t draw, double alpha) {
  double const d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t attempt = 0;; ++attempt) {
    auto const words = random.block(draw, attempt);
    double const x = to_normal(words)[0];  // of the first two words
    double const v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    double const log_u = std::log(to_positive_unit(words[2]));
    if (log_u >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    return std::log(d * v) + std::log(to_positive_unit(words[3])) / alpha;
  }
}

/// A draw from Dirichlet(alpha): shares that add up to 1.
std::vector<double> dirichlet_draw(CounterRandom const& random, std::uint64_t first_draw, int count,
                                   double alpha) {
  std::vector<double> shares;
  for (int i = 0; i < count; ++i)
    shares.push_back(log_gamma_draw(random, first_draw + static_cast<std::uint64_t>(i), alpha));
  auto const greatest = std::ranges::max(shares);
  for (auto& share : shares) share = std::exp(share - greatest);
  auto const sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (auto& share : shares) share /= sum;
  return shares;
}

Parts deal_by_dirichlet(Samples order, ClientConfig const& config, std::uint64_t seed,
                        Samples labels) {
  CounterRandom const random(seed, "shares of clients");
  std::vector<std::vector<std::int64_t>> by_label(
      static_cast<std::size_t>(std::ranges::max(labels) + 1));
  for (auto const sample : order)
    by_label[static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)])].push_back(sample);
  Parts parts(static_cast<std::size_t>(config.clients));
  for (std::size_t label = 0; label < by_label.size(); ++label) {
    auto const first_draw = label * static_cast<std::size_t>(config.clients);
    auto const shares = dirichlet_draw(random, first_draw, config.clients, config.alpha);
    auto const count = static_cast<double>(by_label[label].size());
    double before = 0;
    auto from = by_label[label].begin();
    for (std::size_t client = 0; client < parts.size(); ++client) {
      before += shares[client];
      bool const last = client + 1 == parts.size();
      auto const end = last ? count : std::min(std::round(count * before), count);
      auto const to = by_label[label].begin() + static_cast<std::ptrdiff_t>(end);
      parts[client].insert(parts[client].end(), from, to);
      from = to;
    }
  }
  return parts;
}

[[noreturn]] void refuse(ClientConfig const& config, std::string const& what) {
  throw Error(ExitCode::usage, str("strategy.clients: ", what), "every client trains on its own",
              config.split == Split::dirichlet
                  ? "take a larger split_alpha, fewer clients or another run.seed"
                  : "take fewer clients");
}

ClientSplit::Spread spread_of(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

}  // namespace

ClientSplit::ClientSplit(ClientConfig const& config, std::uint64_t seed, std::int64_t samples,
                         at::Tensor const& labels) {
  auto const pieces = config.clients * (config.split == Split::shards ? pieces_of_client : 1);
  if (samples < pieces)
    refuse(config, str(samples, " training samples cannot be dealt to ", config.clients,
                       config.split == Split::shards ? " clients, two pieces each" : " clients"));
  auto const order = shuffled(samples, seed, "clients");
  Samples known;
  if (config.needs_labels()) {
    expects(labels.defined() && labels.numel() == samples, "every sample has a label");
    known = {labels.data_ptr<std::int64_t>(), static_cast<std::size_t>(samples)};
  }
  parts_ = config.split == Split::iid      ? deal_evenly(order, config.clients)
           : config.split == Split::shards ? deal_shards(order, config.clients, seed, known)
                                           : deal_by_dirichlet(order, config, seed, known);
  for (auto& part : parts_) {
    if (part.empty())
      refuse(config, str("client ", labels_.size(), " of ", config.clients, " has no sample"));
    std::ranges::sort(part);
    std::set<std::int64_t> different;
    for (auto const sample : known.empty() ? Samples() : Samples(part))
      different.insert(known[static_cast<std::size_t>(sample)]);
    labels_.push_back(std::ssize(different));
  }
}

ClientSplit::Spread ClientSplit::samples() const {
  std::vector<std::int64_t> sizes;
  for (auto const& part : parts_) sizes.push_back(std::ssize(part));
  return spread_of(std::move(sizes));
}

ClientSplit::Spread ClientSplit::labels() const {
  return spread_of(labels_);
}

std::int64_t ClientSplit::most_samples(int clients) const {
  std::vector<std::int64_t> sizes;
  for (auto const& part : parts_) sizes.push_back(std::ssize(part));
  std::ranges::sort(sizes, std::greater());
  return std::accumulate(sizes.begin(), sizes.begin() + clients, std::int64_t{0});
}

std::uint64_t ClientSplit::hash() const {
  Hash hash;
  for (auto const& part : parts_) hash.add(std::as_bytes(std::span(part)));
  return hash.value();
}

std::vector<DrawnClient> ClientRounds::drawn(std::int64_t round) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(config_.clients));
  std::iota(order.begin(), order.end(), 0);
  shuffle(CounterRandom(seed_, "clients of a round"), round, order);
  std::vector<DrawnClient> drawn;
  for (int i = 0; i < config_.per_round; ++i) {
    auto const client = static_cast<int>(order[static_cast<std::size_t>(i)]);
    drawn.push_back({client, std::ssize(split_.of(client))});
  }
  return drawn;
}

std::vector<std::int64_t> ClientRounds::samples(std::int64_t round, IndexRange const& slots,
                                                std::int64_t global_batch) const {
  auto const share = global_batch / config_.per_round;  // of a client
  expects(slots.begin % share == 0 && slots.end % share == 0, "slots are those of whole clients");
  CounterRandom const random(seed_, "order of a client");
  auto const clients = drawn(round);
  std::vector<std::int64_t> samples;
  samples.reserve(static_cast<std::size_t>(slots.size()));
  for (auto place = slots.begin / share; place < slots.end / share; ++place) {
    auto const own = split_.of(clients[static_cast<std::size_t>(place)].number);
    auto const end = (place + 1) * share - slots.begin;
    for (std::int64_t pass = 0; std::ssize(samples) < end; ++pass) {
      std::vector<std::int64_t> order(own.begin(), own.end());
      shuffle(random, round * share + pass, order);
      auto const missing = static_cast<std::size_t>(end - std::ssize(samples));
      samples.insert(samples.end(), order.begin(),
                     order.begin() + static_cast<std::ptrdiff_t>(std::min(missing, order.size())));
    }
  }
  return samples;
}

}  // namespace stratagem
