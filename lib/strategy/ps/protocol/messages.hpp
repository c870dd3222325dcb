#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "strategy/strategy.hpp"

namespace stratagem {

// What workers and servers send each other. For each step a worker sends every server a line, then
// that server's chunks of the gradient as the backward pass completes them; back come an answer
// (from server 0) and the chunks of the parameters.

/// Tags of messages. A chunk has its own two, the same for its gradients and its parameters.
inline constexpr int line_tag = 0, answer_tag = 1, end_tag = 2, norm_tag = 3, reads_tag = 4;
inline constexpr int chunk_tag(int index) {
  return 5 + 2 * index;
}

/// A worker's announcement, made when the loss of a step is known and before its gradients follow.
struct PushHeader {
  bool last = false;  ///< no gradients follow: the worker has finished its round
  std::int64_t step = 0;
  std::int64_t first_slot = 0;  ///< of its batch in the global batch
  double lr = 0;
  double loss = 0;
  std::int64_t correct = 0;
  Requests requests;  ///< of the worker
  bool pulls = true;  ///< parameters are to come back for these gradients
  /// Of the collectives it has called, and of its parameters where the step compares them; as many
  /// bits as a number of the message holds.
  std::uint64_t collectives = 0, replicas = 0;
};

/// What server 0 knows thereupon.
struct PullReply {
  double loss = 0;           ///< sync: sum over workers
  std::int64_t correct = 0;  ///< sync: sum over workers
  Requests requests;         ///< sync: of all workers
  std::int64_t share = -1;   ///< async: the worker's next share of the round; -1: none is left
  std::int64_t lag = 0;      ///< async: versions by which what it computed with is old by now
  bool alike = true;         ///< sync: what workers must have alike is
  double norm = 0;           ///< sync: of the sum of all gradients, where that is needed
};

/// A worker's last word on a push, which follows its gradients: async, where the norm of all of
/// them is needed.
struct PushTrailer {
  bool usable = true;     ///< false: they overflowed, and are in no update
  double factor = 1;      ///< of the gradients
  double loss_scale = 1;  ///< under which they were computed
};

/// What every server sends with parameters to a worker that caches them.
struct PullNote {
  std::int64_t reads = 0;  ///< ServerClock::cached_reads()
};

/// What a message keeps of a fingerprint.
inline constexpr std::uint64_t in_message(std::uint64_t fingerprint) {
  return fingerprint >> 11;
}

at::Tensor to_message(PushHeader const& line);
at::Tensor to_message(PullReply const& answer);
at::Tensor to_message(PushTrailer const& end);
at::Tensor to_message(PullNote const& note);
PushHeader line_from(at::Tensor const& message);
PullReply answer_from(at::Tensor const& message);
PushTrailer end_from(at::Tensor const& message);
PullNote note_from(at::Tensor const& message);

/// The event of a server's trace with which a round of asynchronous training begins.
inline constexpr char const* round_event = "round";

/// Room for any of them.
at::Tensor empty_message();

}  // namespace stratagem
