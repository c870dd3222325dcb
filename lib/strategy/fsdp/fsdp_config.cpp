#include "strategy/fsdp/fsdp_config.hpp"

#include <algorithm>
#include <iterator>

#include "strategy/shared/shared_keys.hpp"

namespace stratagem {

Keys keys_of(FsdpConfig& fsdp) {
  Keys keys{
      {"shard", choice(fsdp.shard, {"optimizer", "gradients", "full"}),
       "what is spread over the ranks: ZeRO-1, ZeRO-2, ZeRO-3", false, InFirstFile::yes},
      {"replicas", integer(fsdp.replicas, at_least(1)),
       "groups of ranks that each hold the whole model in shards (HSDP)", false,
       InFirstFile::as_comment},
      {"unit_mb", number_or_auto(fsdp.unit_mb, above(0)),
       "blocks join a unit until it holds this [MiB]; auto: 4, or less where that saves memory",
       false, InFirstFile::as_comment},
      {"reshard_after_forward", flag(fsdp.reshard_after_forward),
       "of shard full: gather again for the backward pass"},
      {"prefetch", integer(fsdp.prefetch, at_least(0)), "units gathered ahead, in both passes",
       false, InFirstFile::as_comment},
      {"keep_units", integer(fsdp.keep_units, at_least(0)),
       "of shard full: number of last units that stay gathered after the forward pass"},
      {"memory_budget", text(fsdp.memory_budget),
       "of each rank's lasting memory, such as 600MiB; decides prefetch and keep_units"},
      {"overlap", flag(fsdp.overlap), "communicate while blocks compute"},
      accumulate_key(fsdp.accumulate),
      micro_batches_key(fsdp.micro_batches),
      {"reduce", choice(fsdp.reduce, {"master", "compute"}),
       "type in which gradients are summed over ranks"},
  };
  std::ranges::move(block_code_keys(fsdp.compression), std::back_inserter(keys));
  keys.push_back(parameter_compression_key(fsdp.parameter_compression));
  return keys;
}

std::vector<std::pair<std::string, FsdpConfig>> alternatives(FsdpConfig const& given) {
  auto optimizer = given;
  optimizer.shard = Shard::optimizer;
  optimizer.reshard_after_forward = true;
  optimizer.keep_units = 0;
  auto gradients = optimizer, full = given;
  gradients.shard = Shard::gradients;
  full.shard = Shard::full;
  return {{"fsdp optimizer", optimizer}, {"fsdp gradients", gradients}, {"fsdp full", full}};
}

}  // namespace stratagem
