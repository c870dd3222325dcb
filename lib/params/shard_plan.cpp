#include "params/shard_plan.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {
namespace {

/// The entries of the blocks of `unit` that are in low precision, or those that are not.
Chunk make_chunk(ParameterLayout const& layout, Unit const& unit, bool low_precision, bool mixed) {
  Chunk chunk{.low_precision = low_precision};
  auto const* first = layout.entries().data();
  for (int block = unit.first_block; block <= unit.last_block; ++block)
    for (auto const& entry : layout.entries(block)) {
      if (mixed && entry.spec.keep_fp32 == low_precision) continue;
      chunk.places.push_back({static_cast<std::size_t>(&entry - first), chunk.used});
      chunk.used = ParameterLayout::aligned(chunk.used + entry.spec.numel());
    }
  return chunk;
}

void cut(Unit& unit, ParameterLayout const& layout, bool mixed, ShardPlan& plan) {
  for (bool const low_precision : {true, false}) {
    if (low_precision && !mixed) continue;
    auto chunk = make_chunk(layout, unit, low_precision, mixed);
    if (chunk.used == 0) continue;
    chunk.shard = ParameterLayout::aligned(ceil_div(chunk.used, plan.ranks));
    chunk.owned = plan.owned;
    plan.owned += chunk.shard;
    unit.chunks.push_back(std::move(chunk));
  }
}

}  // namespace

int ShardPlan::unit_of(int block) const {
  auto const found =
      std::ranges::find_if(units, [&](Unit const& unit) { return block <= unit.last_block; });
  expects(found != units.end(), "a block of the model");
  return static_cast<int>(found - units.begin());
}

std::uint64_t ShardPlan::hash() const {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(ranks));
  for (auto const& unit : units) {
    hash.add(static_cast<std::uint64_t>(unit.first_block));
    for (auto const& chunk : unit.chunks) {
      hash.add(static_cast<std::uint64_t>(chunk.shard));
      for (auto const& place : chunk.places)
        hash.add(place.entry).add(static_cast<std::uint64_t>(place.offset));
    }
  }
  return hash.value();
}

ShardPlan make_shard_plan(ParameterLayout const& layout, int ranks, std::int64_t unit_elements,
                          bool mixed) {
  ShardPlan plan{.ranks = ranks};
  std::int64_t filled = 0;  // elements of the last unit
  for (int block = 0; block < layout.blocks(); ++block) {
    auto const size = layout.range(block).size();
    if (plan.units.empty() || (filled >= unit_elements && size > 0) ||
        layout.lends(plan.units.back().last_block)) {
      plan.units.push_back({.first_block = block});
      filled = 0;
    }
    plan.units.back().last_block = block;
    filled += size;
  }
  for (auto& unit : plan.units) cut(unit, layout, mixed, plan);
  return plan;
}

std::vector<FlatRange> gaps(Chunk const& chunk, ParameterLayout const& layout, int ranks) {
  std::vector<FlatRange> free;
  std::int64_t end = 0;
  for (auto const& place : chunk.places) {
    if (place.offset > end) free.push_back({end, place.offset});
    end = place.offset + layout.entries()[place.entry].spec.numel();
  }
  if (end < chunk.shard * ranks) free.push_back({end, chunk.shard * ranks});
  return free;
}

}  // namespace stratagem
