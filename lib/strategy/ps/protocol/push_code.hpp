#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "compress/codec.hpp"
#include "data/batch.hpp"
#include "params/parameter_layout.hpp"

namespace stratagem {

/// The code in which workers push gradients. Tensors of gradients and residuals are those of the
/// flat space, or of a range of it that begins and ends with blocks; codes are bytes.
class PushCode {
 public:
  /// `layout` outlives it. Not for Code::none.
  PushCode(Compression const& compression, ParameterLayout const& layout, std::uint64_t seed);

  /// What a worker begins with: zeros for the flat space, or nothing without feedback.
  at::Tensor make_residual() const;
  /// Of gradients of so many elements.
  std::int64_t bytes(std::int64_t elements) const { return codec_.wire_bytes(elements); }
  /// The code of `range`, in what holds that of all elements from 0 on.
  at::Tensor part(at::Tensor const& codes, FlatRange range) const;

  /// `code` <- elements `range` of gradients + residual; of both, where there is a residual, it
  /// keeps what is lost. Draws are those of the batch's place among its step's: in a synchronous
  /// step, the worker's.
  void encode(at::Tensor const& gradients, at::Tensor const& residual, FlatRange range,
              Batch const& batch, at::Tensor const& code) const;
  /// `values` <- what is read of the elements `range`.
  void decode(at::Tensor const& code, FlatRange range, at::Tensor const& values) const;
  /// All `gradients` <- what a server would read; `residual` as above.
  void pass_through(at::Tensor const& gradients, at::Tensor const& residual,
                    Batch const& batch) const;

 private:
  ParameterLayout const& layout_;
  Codec codec_;
  bool feedback_;
};

/// Nothing where gradients are not coded.
std::optional<PushCode> make_push_code(Compression const& compression,
                                       ParameterLayout const& layout, std::uint64_t seed);

}  // namespace stratagem
