#include "strategy/fedavg/fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

int bits_of_sum(std::int64_t weights) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(weights - 1)));
}

}  // namespace

FixedPoint::FixedPoint(std::int64_t weights, double largest)
    : bits_(std::min(32 - bits_of_sum(weights), most_bits)),
      exponent_(bits_ - 1 - static_cast<int>(std::ceil(std::log2(largest)))) {}

double FixedPoint::unit() const {
  return std::ldexp(1, -exponent_);
}

std::int64_t FixedPoint::code(at::Tensor const& change, std::int64_t weight,
                              at::Tensor const& codes) const {
  auto const most = static_cast<double>(limit());
  change.mul_(std::ldexp(1, exponent_)).round_();  // to even
  auto const within = change.abs().le(most).sum().item<std::int64_t>();
  codes.copy_(change.clamp_(-most, most)).mul_(weight);
  return change.numel() - within;
}

void FixedPoint::mean_of(at::Tensor const& sum, std::int64_t weights,
                         at::Tensor const& mean) const {
  mean.copy_(sum).mul_(unit() / static_cast<double>(weights));
}

}  // namespace stratagem
