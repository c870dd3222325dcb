#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stratagem {

/// An extent of a tensor, or an integer that a node takes: for n samples, fixed + per_sample * n.
struct Extent {
  std::int64_t fixed = 0;
  std::int64_t per_sample = 0;

  std::int64_t of(std::int64_t samples) const { return fixed + per_sample * samples; }
  bool is_samples() const { return fixed == 0 && per_sample == 1; }
  bool operator==(Extent const&) const = default;
};

/// Reads an expression as torch.export writes it, for example `Mul(Integer(9), Symbol('s77', ...))`
/// where `samples` is `Symbol('s77', ...)`. Empty if it is not of the form fixed + per_sample * n.
std::optional<Extent> extent_of(std::string_view expression, std::string_view samples);

}  // namespace stratagem
