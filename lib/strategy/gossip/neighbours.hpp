#pragma once

#include <cstdint>

#include "strategy/gossip/gossip_config.hpp"

namespace stratagem {

/// Who hears whom in mixing t = 0, 1, ..., and the matrix p(t) of x_i <- sum over j of p_ij x_j. A
/// worker hands each of the n workers that hear it the same share of what it has, 1 / (n + 1)
/// rounded to 24 bits, and keeps the rest: columns add up to 1 exactly, in fp32, too.
///
/// - ring: the two beside it;
/// - exponential: the one 2^(t mod ceil log2 W) further, the only graph that changes, and directed;
/// - complete: all;
/// - star: worker 0, and 0 hears all; rows do not add up to 1, so it takes push-sum.
class Neighbours {
 public:
  Neighbours(Graph graph, int workers);

  int workers() const { return workers_; }
  bool hears(int worker, int sender, std::int64_t mixing) const;
  /// Of what `sender` has: for each that hears it, and for itself.
  double sent(int sender) const;
  double kept(int sender) const { return 1 - listeners(sender) * sent(sender); }
  /// p_ij(t), i hearing j.
  double weight(int worker, int sender, std::int64_t mixing) const;

  /// Mixings after which the matrices repeat.
  int period() const { return graph_ == Graph::exponential ? levels_ : 1; }
  /// Mixings after which each has heard of all, directly or not, whenever they begin.
  int reach() const;
  /// Rows add up to 1, too: the mean of all workers is where they go without push-sum.
  bool doubly_stochastic() const;
  /// Workers that hear `sender`.
  int listeners(int sender) const;

 private:
  Graph graph_;
  int workers_;
  int levels_;  ///< ceil log2 of workers, at least 1
};

}  // namespace stratagem
