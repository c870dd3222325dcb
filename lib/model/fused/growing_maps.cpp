#include "model/fused/growing_maps.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/contract.hpp"
#include "model/fused/maps.hpp"

namespace stratagem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t rows_of_moments = 2;

/// The first channels of maps like x, in rows for `width` of them.
at::Tensor first_channels(at::Tensor const& memory, at::Tensor const& x, std::int64_t channels,
                          std::int64_t width) {
  auto const of_line = x.size(3) * width;
  return memory.as_strided({x.size(0), channels, x.size(2), x.size(3)},
                           {x.size(2) * of_line, 1, of_line, width}, 0);
}

/// From channel `begin` on.
void take_moments(GrowingMaps const& grown, std::int64_t begin) {
  auto part = grown.maps;
  part.channels -= begin;
  moments_on_cpu(part, {grown.rows.first + begin, grown.rows.stride},
                 {grown.moments.mean + begin, grown.moments.variance + begin});
}

class Append : public torch::autograd::Function<Append> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x, at::Tensor const& fresh,
                            std::int64_t width) {
    auto const given = growing_maps_of(x);
    expects(given.has_value(), "maps that can grow");
    auto const channels = x.size(1), grown = channels + fresh.size(1);
    bool const in_place = given->has_room();
    expects(grown <= width && (!in_place || given->rows.stride == width), "room for all channels");
    context->saved_data["channels"] = channels;

    // Another handle of the same memory: to write behind the channels of x does not change x.
    auto memory = x.variable_data();
    if (!in_place) {
      memory = at::empty({(given->maps.rows + rows_of_moments) * width}, x.options());
      first_channels(memory, x, channels, width).copy_(x);
    }
    auto const result = first_channels(memory, x, grown, width);
    result.narrow(1, channels, fresh.size(1)).copy_(fresh);
    if (grown < width) take_moments(*growing_maps_of(result), in_place ? channels : 0);
    return result.variable_data();
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const channels = context->saved_data["channels"].toInt();
    auto const of_fresh = gradients[0].narrow(1, channels, gradients[0].size(1) - channels);
    return {gradients[0].narrow(1, 0, channels),
            of_fresh.contiguous(at::MemoryFormat::ChannelsLast), at::Tensor()};
  }
};

}  // namespace

std::optional<GrowingMaps> growing_maps_of(at::Tensor const& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || x.dim() != 4) return std::nullopt;
  auto* const first = x.data_ptr<float>();
  if (auto const whole = maps_of(x)) return GrowingMaps{*whole, {first, whole->channels}, {}};

  auto const channels = x.size(1), width = row_stride_of(x).value_or(0);
  if (width <= channels) return std::nullopt;
  auto const rows = x.size(0) * x.size(2) * x.size(3);
  auto const bytes = static_cast<std::size_t>((rows + rows_of_moments) * width) * sizeof(float);
  if (x.storage_offset() != 0 || x.storage().nbytes() != bytes) return std::nullopt;
  auto* const moments = first + rows * width;
  return GrowingMaps{
      {rows, channels, gpu::Element::fp32}, {first, width}, {moments, moments + width}};
}

at::Tensor append(at::Tensor const& x, at::Tensor const& fresh, std::int64_t width) {
  return Append::apply(x, fresh, width);
}

}  // namespace stratagem
