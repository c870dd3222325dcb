#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem {

enum class Augmentation { none, standard };

/// Section `data` of the configuration. Exactly one of the two batch sizes is positive.
struct DataConfig {
  std::string dataset;
  std::string root;                   ///< folder that contains mnist/ and cifar-10-batches-bin/
  std::string path;                   ///< of the user's own images or text; else empty
  std::vector<double> mean, stddev;   ///< per channel, of own images; empty: the usual ones
  bool flip = true;                   ///< mirrored images of the user keep their label
  int decode_threads = 0;             ///< of one rank; 0: see decode_threads()
  std::int64_t global_batch = 128;    ///< samples per step of all ranks together
  std::int64_t batch_per_worker = 0;  ///< samples per step of one rank
  std::int64_t input_size = 32;       ///< edge of the images the model sees [pixels]
  std::int64_t seq_len = 0;           ///< tokens of a sequence; 0: images
  Augmentation augment = Augmentation::none;
  std::int64_t subset = 0;   ///< use only the first so many training images; 0: all
  std::int64_t holdout = 0;  ///< of these the last so many are not trained on but evaluated

  std::int64_t global_batch_for(int ranks) const {
    return batch_per_worker > 0 ? batch_per_worker * ranks : global_batch;
  }
};

}  // namespace stratagem
