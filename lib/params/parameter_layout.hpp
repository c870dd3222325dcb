#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/arithmetic.hpp"
#include "params/parameter_spec.hpp"

namespace stratagem {

/// Elements [begin, end) of the flat space.
struct FlatRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(FlatRange const&) const = default;
};

/// The place of one parameter in the flat space.
struct ParameterEntry {
  ParameterSpec spec;
  int block = 0;
  std::int64_t offset = 0;  ///< of its first element
  std::vector<std::int64_t>
      strides;  ///< physical order: channels_last for 4-D tensors if requested
};

/// The flat space of all parameters of a model: blocks in forward order, without overlap. Within a
/// block, parameters that compute in low precision come first, then those that stay fp32, so each
/// group is one range. Every parameter starts at a multiple of `alignment` elements: 64 bytes even
/// in 16 bit. Immutable.
class ParameterLayout {
 public:
  static constexpr std::int64_t alignment = 32;  ///< [elements]
  static constexpr std::int64_t aligned(std::int64_t elements) {
    return round_up(elements, alignment);
  }

  /// One list of declared parameters per block; and one of names that it borrows from earlier
  /// blocks, where some block does.
  ParameterLayout(std::vector<std::vector<ParameterSpec>> const& blocks, bool channels_last,
                  std::vector<std::vector<std::string>> const& borrowed = {});

  int blocks() const { return static_cast<int>(ranges_.size()); }
  /// Padded elements of the whole space.
  std::int64_t size() const { return ranges_.empty() ? 0 : ranges_.back().end; }
  /// Number of parameters, without padding.
  std::int64_t parameter_count() const;

  std::vector<ParameterEntry> const& entries() const { return entries_; }
  /// The parameters of one block, in the order of declaration.
  std::span<ParameterEntry const> entries(int block) const;
  /// Those of earlier blocks that this block uses too: indices in entries(). They have no place of
  /// their own.
  std::span<std::size_t const> borrowed(int block) const {
    return borrowed_[static_cast<std::size_t>(block)];
  }
  /// What a block runs with: its own parameters, then those that it borrows.
  std::vector<ParameterEntry const*> used_by(int block) const;
  /// Some later block borrows a parameter of this one.
  bool lends(int block) const;
  FlatRange range(int block) const { return ranges_[static_cast<std::size_t>(block)]; }
  /// The part of range(block) that computes in low precision; the rest stays fp32.
  FlatRange low_precision_range(int block) const { return low_[static_cast<std::size_t>(block)]; }

  /// Of names, shapes, order and offsets; equal on all ranks of a run.
  std::uint64_t hash() const;

 private:
  std::size_t find_lender(std::string const& name, std::size_t borrower) const;

  std::vector<ParameterEntry> entries_;
  std::vector<std::size_t> first_entry_;            ///< by block, and one past the last
  std::vector<std::vector<std::size_t>> borrowed_;  ///< by block
  std::vector<FlatRange> ranges_, low_;
};

/// The intersection of two ranges; its size is 0 or less if they do not overlap.
FlatRange overlap(FlatRange a, FlatRange b);

/// Copies the elements of a parameter that lie in `range` of a space in which the parameter begins
/// at `offset`. `values`: the parameter in its logical shape, any strides; `part`: the elements of
/// `range`.
void copy_overlap(at::Tensor const& values, ParameterEntry const& entry, std::int64_t offset,
                  FlatRange range, at::Tensor const& part);

/// The parameter as a tensor of its logical shape within `flat` (1-D, layout.size() elements).
at::Tensor view_of(at::Tensor const& flat, ParameterEntry const& entry);

/// Views of all parameters of a block, in the order of declaration; borrowed ones last.
std::vector<at::Tensor> views_of(at::Tensor const& flat, ParameterLayout const& layout, int block);

}  // namespace stratagem
