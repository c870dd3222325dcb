#pragma once

#include <vector>

#include "compress/compression.hpp"

namespace stratagem {

/// Time that one core needs for a byte of fp32 gradients [s].
struct CodecSpeed {
  double encode = 0;  ///< with feedback
  double decode = 0;
  double decode_and_add = 0;

  /// For all that a rank codes and reads for a byte of its gradients, among so many ranks: they,
  /// and the sum of its slice.
  double of_step(int ranks) const {
    auto const slice = 1.0 / ranks;
    return (encode + decode) * (1 + slice) + decode_and_add * (1 - slice);
  }
};

/// One way to code.
struct CodecTimes {
  Code code = Code::none;
  Rounding rounding = Rounding::nearest;
  CodecSpeed speed;
};

/// Every code, in each rounding that it knows, of gradients that lie in memory.
std::vector<CodecTimes> measure_codecs();

/// The bandwidth of a rank's link, each way [B/s], below which a step is shorter with the code than
/// with fp32 if no communication is hidden: f (1 - rho) / c, where a rank sends f = 2 (N-1)/N bytes
/// for each of its gradients', rho of them in code, and c is of_step(). 0 for one rank.
double pays_below(Code code, CodecSpeed const& speed, int ranks);

}  // namespace stratagem
