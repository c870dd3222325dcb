#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/sampler.hpp"

namespace stratagem {

/// What a rank is for. A rank is a worker or a server.
struct Seat {
  int worker = -1;  ///< number among the ranks that compute; -1: none
  int server = -1;  ///< number among the ranks that serve; -1: none

  bool operator==(Seat const&) const = default;
};

/// The seats of all ranks of a run: a value, the same on all of them. Workers and servers are
/// numbered in rank order. A strategy may let a rank stand for several workers of its own; to
/// everybody else a rank that computes is one.
class Placement {
 public:
  /// All ranks compute.
  explicit Placement(int ranks);
  /// `servers`: ranks, ascending. All others compute.
  Placement(int ranks, std::vector<int> servers);

  int ranks() const { return static_cast<int>(seats_.size()); }
  int workers() const { return static_cast<int>(workers_.size()); }
  int servers() const { return static_cast<int>(servers_.size()); }

  Seat seat_of(int rank) const;
  bool serves(int rank) const { return seat_of(rank).server >= 0; }
  int rank_of_worker(int worker) const { return workers_.at(static_cast<std::size_t>(worker)); }
  int rank_of_server(int server) const { return servers_.at(static_cast<std::size_t>(server)); }
  /// Ascending.
  std::vector<int> const& worker_ranks() const { return workers_; }
  std::vector<int> const& server_ranks() const { return servers_; }

  /// A rank's part of a global batch, or of the test images; none for a server.
  std::optional<RankSlice> slice_of(int rank) const;

  std::uint64_t hash() const;

 private:
  std::vector<Seat> seats_;  ///< by rank
  std::vector<int> workers_, servers_;
};

}  // namespace stratagem
