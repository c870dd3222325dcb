#include "strategy/serial/serial_config.hpp"

#include <algorithm>
#include <iterator>

#include "strategy/shared/shared_keys.hpp"

namespace stratagem {

Keys keys_of(SerialConfig& serial) {
  Keys keys{
      {"emulate_ranks", integer(serial.emulate_ranks, between(1, 1024)),
       "make the steps that this many ranks would make together", false, InFirstFile::as_comment},
      {"groups", integer(serial.groups, between(1, 1024)),
       "of emulate_ranks: gradients are summed within each group first, as fsdp's replicas"},
      micro_batches_key(serial.micro_batches),
      accumulate_key(serial.accumulate),
  };
  std::ranges::move(compression_keys(serial.compression), std::back_inserter(keys));
  keys.push_back(
      {"compressed_sums", flag(serial.compressed_sums),
       "of a compression: the sum of gradients is coded, too, as under ddp; false: fsdp"});
  keys.push_back(parameter_compression_key(serial.parameter_compression));
  return keys;
}

std::vector<std::pair<std::string, SerialConfig>> alternatives(SerialConfig const& /*given*/) {
  return {};
}

}  // namespace stratagem
