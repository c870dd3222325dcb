#include "strategy/ddp/ddp_config.hpp"

#include <algorithm>
#include <iterator>

#include "strategy/shared/shared_keys.hpp"

namespace stratagem {

Keys keys_of(DdpConfig& ddp) {
  Keys keys{
      {"bucket_mb", number(ddp.bucket_mb, above(0)),
       "a bucket closes when it holds this much [MiB]", false, InFirstFile::as_comment},
      {"overlap", flag(ddp.overlap), "communicate during the backward pass", false,
       InFirstFile::as_comment},
      micro_batches_key(ddp.micro_batches),
  };
  std::ranges::move(compression_keys(ddp.compression), std::back_inserter(keys));
  return keys;
}

std::vector<std::pair<std::string, DdpConfig>> alternatives(DdpConfig const& given) {
  return {{"ddp", given}};
}

}  // namespace stratagem
