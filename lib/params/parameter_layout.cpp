#include "params/parameter_layout.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {
namespace {

/// `order` lists the dimensions from the slowest to the fastest in memory.
std::vector<std::int64_t> strides_for(std::vector<std::int64_t> const& shape,
                                      std::vector<std::size_t> const& order) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    strides[*dimension] = stride;
    stride *= shape[*dimension];
  }
  return strides;
}

std::vector<std::int64_t> physical_strides(std::vector<std::int64_t> const& shape,
                                           bool channels_last) {
  if (channels_last && shape.size() == 4) return strides_for(shape, {0, 2, 3, 1});
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  return strides_for(shape, order);
}

}  // namespace

ParameterLayout::ParameterLayout(std::vector<std::vector<ParameterSpec>> const& blocks,
                                 bool channels_last,
                                 std::vector<std::vector<std::string>> const& borrowed)
    : borrowed_(blocks.size()) {
  std::int64_t offset = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    first_entry_.push_back(entries_.size());
    for (auto const& spec : blocks[b])
      entries_.push_back(
          {spec, static_cast<int>(b), 0, physical_strides(spec.shape, channels_last)});
    FlatRange range{offset, offset};
    for (bool const fp32 : {false, true}) {
      for (auto i = first_entry_.back(); i < entries_.size(); ++i) {
        if (entries_[i].spec.keep_fp32 != fp32) continue;
        entries_[i].offset = offset;
        offset = aligned(offset + entries_[i].spec.numel());
      }
      if (!fp32) low_.push_back({range.begin, offset});
    }
    range.end = offset;
    ranges_.push_back(range);
  }
  first_entry_.push_back(entries_.size());
  for (std::size_t b = 0; b < borrowed.size(); ++b)
    for (auto const& name : borrowed[b]) borrowed_[b].push_back(find_lender(name, b));
}

std::size_t ParameterLayout::find_lender(std::string const& name, std::size_t borrower) const {
  std::size_t entry = 0;
  while (entry < first_entry_[borrower] && entries_[entry].spec.name != name) ++entry;
  expects(entry < first_entry_[borrower] && !entries_[entry].spec.is_part(),
          "an earlier block declares what is borrowed, whole");
  return entry;
}

std::vector<ParameterEntry const*> ParameterLayout::used_by(int block) const {
  std::vector<ParameterEntry const*> used;
  for (auto const& entry : entries(block)) used.push_back(&entry);
  for (auto const entry : borrowed(block)) used.push_back(&entries_[entry]);
  return used;
}

bool ParameterLayout::lends(int block) const {
  auto const of_block = [&](std::size_t entry) { return entries_[entry].block == block; };
  return std::ranges::any_of(borrowed_,
                             [&](auto const& of) { return std::ranges::any_of(of, of_block); });
}

std::int64_t ParameterLayout::parameter_count() const {
  std::int64_t count = 0;
  for (auto const& entry : entries_) count += entry.spec.numel();
  return count;
}

std::span<ParameterEntry const> ParameterLayout::entries(int block) const {
  auto const b = static_cast<std::size_t>(block);
  return std::span(entries_).subspan(first_entry_[b], first_entry_[b + 1] - first_entry_[b]);
}

std::uint64_t ParameterLayout::hash() const {
  Hash hash;
  for (auto const& entry : entries_) {
    hash.add(entry.spec.name)
        .add(static_cast<std::uint64_t>(entry.block))
        .add(static_cast<std::uint64_t>(entry.offset));
    for (std::size_t i = 0; i < entry.strides.size(); ++i)
      hash.add(static_cast<std::uint64_t>(entry.spec.shape[i]))
          .add(static_cast<std::uint64_t>(entry.strides[i]));
  }
  for (std::size_t b = 0; b < borrowed_.size(); ++b)
    for (auto const entry : borrowed_[b]) hash.add(b).add(entry);
  return hash.value();
}

FlatRange overlap(FlatRange a, FlatRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

void copy_overlap(at::Tensor const& values, ParameterEntry const& entry, std::int64_t offset,
                  FlatRange range, at::Tensor const& part) {
  auto const numel = entry.spec.numel();
  auto const common = overlap({offset, offset + numel}, range);
  if (common.size() <= 0) return;
  at::NoGradGuard const no_grad;
  auto ordered = values;
  if (values.strides() != at::IntArrayRef(entry.strides))
    ordered = at::empty_strided(entry.spec.shape, entry.strides, values.options()).copy_(values);
  part.narrow(0, common.begin - range.begin, common.size())
      .copy_(ordered.as_strided({numel}, {1}).narrow(0, common.begin - offset, common.size()));
}

at::Tensor view_of(at::Tensor const& flat, ParameterEntry const& entry) {
  expects(entry.offset + entry.spec.numel() <= flat.numel(),
          "the parameter lies within the flat tensor");
  return flat.as_strided(entry.spec.shape, entry.strides, flat.storage_offset() + entry.offset);
}

std::vector<at::Tensor> views_of(at::Tensor const& flat, ParameterLayout const& layout, int block) {
  std::vector<at::Tensor> views;
  for (auto const* entry : layout.used_by(block)) views.push_back(view_of(flat, *entry));
  return views;
}

}  // namespace stratagem
