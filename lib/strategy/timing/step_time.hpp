#pragma once

#include <vector>

#include "compress/codec_speed.hpp"
#include "strategy/timing/curve.hpp"
#include "strategy/timing/transfer.hpp"

namespace stratagem {

/// What a step of one plan is made of, on one machine.
struct StepCosts {
  double forward_s = 0, backward_s = 0;                  ///< of one pass of a worker
  double optimizer_s = 0;                                ///< an update of all parameters
  TransferTimes all_reduce, reduce_scatter, all_gather;  ///< among all ranks
  TransferTimes message;                                 ///< from one rank to another
  TransferTimes exchange;  ///< of all ranks at once, each sends one message and receives one
  Curve push;              ///< served by a server, with its side of the messages, over elements
  int cores = 0;           ///< of a node; 0 where ranks compute on GPUs and need few
  int threads = 1;
  int ranks_on_node = 1;
  std::vector<CodecTimes> codecs;  ///< of one core, as many at once as ranks on a node

  /// Error(usage) where it was not measured; nothing takes none of the time.
  CodecSpeed codec(Compression const& compression) const;
};

/// Where the time of one step will go.
struct StepTime {
  double compute_s = 0;  ///< a worker's passes and its part of the update
  double exposed_s = 0;  ///< waits for communication that computation does not hide
  double cores_s = 0;    ///< waits for cores that the other ranks of the node, and messages, need
  double images_s = 0;   ///< waits for images, or for the cores that read them

  double total() const { return compute_s + exposed_s + cores_s + images_s; }
};

}  // namespace stratagem
