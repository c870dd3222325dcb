#include "model/convolution.hpp"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/depthwise.hpp"
#include "model/gradient_places.hpp"
#include "model/taps.hpp"

namespace stratagem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Pixels of the largest small map, by kind of convolution: measured against oneDNN with AVX-512.
constexpr std::int64_t most_pixels = 4, most_of_pointwise = 16, most_of_depthwise = 64;

bool is_depthwise(at::Tensor const& x, at::Tensor const& weight, Window const& window) {
  return window.groups > 1 && window.groups == x.size(1) && weight.size(0) == x.size(1);
}

/// One tap that meets every pixel: a product for all pixels together.
bool is_pointwise(TapPlan const& plan) {
  return plan.kernel == 1 && plan.window.stride == 1 && plan.window.padding == 0;
}

/// In bf16 a lone product is rounded once; what is added up is widened before.
at::ScalarType type_of_sums(TapPlan const& plan, at::ScalarType type) {
  bool const lone = is_pointwise(plan) || (plan.in_pixels() == 1 && plan.out_pixels() == 1);
  return type == at::kBFloat16 && (plan.window.groups > 1 || !lone) ? at::kFloat : type;
}

/// Maps as [n, pixels * channels], or a weight as [out, taps * in]: the numbers of a pixel, or of a
/// tap, together. A view, of what lies in channels_last.
at::Tensor rows_of(at::Tensor const& x) {
  return x.permute({0, 2, 3, 1}).reshape({x.size(0), -1});
}

at::Tensor in_channels_last(at::Tensor const& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

/// Columns of a matrix.
at::Tensor columns(at::Tensor const& matrix, std::int64_t begin, std::int64_t count) {
  return matrix.narrow(1, begin, count);
}

/// What a backward pass begins with, and what it makes.
struct Gradients {
  at::Tensor x, weight;  ///< undefined where not wanted
};

void add_products(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
                  at::Tensor const& y) {
  if (is_pointwise(plan)) {
    y.view({-1, plan.out}).addmm_(x.view({-1, plan.in}), weight.t());
    return;
  }
  for (auto const& run : plan.runs())
    columns(y, run.y, plan.out)
        .addmm_(columns(x, run.x, run.width), columns(weight, run.weight, run.width).t());
}

void add_gradients(TapPlan const& plan, at::Tensor const& x, at::Tensor const& weight,
                   at::Tensor const& y, Gradients const& into) {
  if (is_pointwise(plan)) {
    auto const rows = y.view({-1, plan.out});
    if (into.x.defined()) into.x.view({-1, plan.in}).addmm_(rows, weight);
    if (into.weight.defined()) into.weight.addmm_(rows.t(), x.view({-1, plan.in}));
    return;
  }
  for (auto const& run : plan.runs()) {
    auto const of_pixel = columns(y, run.y, plan.out);
    if (into.x.defined())
      columns(into.x, run.x, run.width).addmm_(of_pixel, columns(weight, run.weight, run.width));
    if (into.weight.defined())
      columns(into.weight, run.weight, run.width)
          .addmm_(of_pixel.t(), columns(x, run.x, run.width));
  }
}

class SmallMaps : public torch::autograd::Function<SmallMaps> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x, at::Tensor const& weight,
                            std::optional<at::Tensor> const& bias, Window const& window,
                            c10::intrusive_ptr<GradientPlaces> const& places, int parameter) {
    context->save_for_backward({x, weight});
    context->saved_data["window"] =
        std::vector<std::int64_t>{window.stride, window.padding, window.groups};
    context->saved_data["biased"] = bias.has_value();
    context->saved_data["parameter"] = static_cast<std::int64_t>(parameter);
    if (places) context->saved_data["places"] = c10::IValue::make_capsule(places);
    return compute(x, weight, bias, window);
  }

  static at::Tensor compute(at::Tensor const& x, at::Tensor const& weight,
                            std::optional<at::Tensor> const& bias, Window const& window) {
    TapPlan const plan(x, weight, window);
    auto const type = type_of_sums(plan, x.scalar_type());
    auto const pixels = rows_of(in_channels_last(x)).to(type), taps = weight.to(type);
    auto const map = empty_map({plan.samples, plan.out, plan.out_height, plan.out_width}, pixels);
    auto const y = rows_of(map.zero_());
    if (bias) y.view({-1, plan.out}).add_(*bias);
    if (is_depthwise(x, weight, window))
      depthwise(plan, pixels, taps, y);
    else
      add_products(plan, pixels, rows_of(in_channels_last(taps)), y);
    return map.to(x.scalar_type()).contiguous(x.suggest_memory_format());
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const saved = context->get_saved_variables();
    auto const &x = saved[0], &weight = saved[1];
    auto const given = context->saved_data["window"].toIntVector();
    TapPlan const plan(x, weight, {given[0], given[1], given[2]});
    auto const own = x.scalar_type(), type = type_of_sums(plan, own);
    auto const y = rows_of(in_channels_last(gradients[0])).to(type);
    variable_list result(6);
    bool const wants_x = context->needs_input_grad(0), wants_weight = context->needs_input_grad(1);
    Gradients into;
    at::Tensor of_x, of_weight;
    if (wants_x) into.x = rows_of((of_x = empty_map(x.sizes(), y)).zero_());
    auto const pixels = rows_of(in_channels_last(x)).to(type), taps = weight.to(type);
    if (is_depthwise(x, weight, plan.window)) {
      if (wants_weight) of_weight = at::empty(weight.sizes(), y.options());
      depthwise_backward(plan, pixels, taps, y, into.x, of_weight);
    } else {
      auto const place = wants_weight && type == own ? place_of(context, weight) : at::Tensor();
      if (wants_weight && !place.defined()) of_weight = empty_map(weight.sizes(), y);
      if (wants_weight) into.weight = rows_of((place.defined() ? place : of_weight).zero_());
      add_gradients(plan, pixels, rows_of(in_channels_last(taps)), y, into);
    }
    if (wants_x) result[0] = of_x.to(own).contiguous(x.suggest_memory_format());
    if (of_weight.defined()) result[1] = of_weight.to(own);
    if (context->saved_data["biased"].toBool()) result[2] = y.view({-1, plan.out}).sum(0).to(own);
    return result;
  }

 private:
  /// Or a weight.
  static at::Tensor empty_map(at::IntArrayRef sizes, at::Tensor const& like) {
    return at::empty(sizes, like.options(), at::MemoryFormat::ChannelsLast);
  }

  /// Where the weight's gradient is wanted, if products can be computed there; it counts as landed.
  static at::Tensor place_of(AutogradContext* context, at::Tensor const& weight) {
    auto const found = context->saved_data.find("places");
    if (found == context->saved_data.end()) return {};
    auto const capsule = found->second.toCapsule();
    auto& places = static_cast<GradientPlaces&>(*capsule);
    auto const parameter = static_cast<int>(context->saved_data["parameter"].toInt());
    auto const place = places.take(parameter);
    bool const suits = place.defined() && place.scalar_type() == weight.scalar_type() &&
                       place.is_contiguous(at::MemoryFormat::ChannelsLast);
    if (!suits) return {};
    places.landed[static_cast<std::size_t>(parameter)] = true;
    return place;
  }
};

}  // namespace

bool is_of_small_maps(at::Tensor const& x, at::Tensor const& weight, Window const& window) {
  auto const type = x.scalar_type();
  bool const known = type == at::kFloat || type == at::kDouble || type == at::kBFloat16;
  if (!x.is_cpu() || !known || x.dim() != 4 || weight.size(2) != weight.size(3)) return false;
  if (type != weight.scalar_type() || x.size(1) != weight.size(1) * window.groups) return false;
  if (window.groups != 1 && !is_depthwise(x, weight, window)) return false;
  auto const side = [&](std::int64_t extent) {
    return (extent + 2 * window.padding - weight.size(2)) / window.stride + 1;
  };
  auto const most = window.groups > 1     ? most_of_depthwise
                    : weight.size(2) == 1 ? most_of_pointwise
                                          : most_pixels;
  auto const height = side(x.size(2)), width = side(x.size(3));
  return x.size(0) > 0 && height > 0 && width > 0 && height * width <= most;
}

at::Tensor convolve(at::Tensor const& x, at::Tensor const& weight,
                    std::optional<at::Tensor> const& bias, Window const& window, bool fused,
                    GradientPlaces* places, int parameter) {
  if (!fused || !is_of_small_maps(x, weight, window))
    return at::conv2d(x, weight, bias, window.stride, window.padding, 1, window.groups);
  if (!at::GradMode::is_enabled()) return SmallMaps::compute(x, weight, bias, window);
  auto const shared = places == nullptr ? c10::intrusive_ptr<GradientPlaces>()
                                        : c10::intrusive_ptr<GradientPlaces>::reclaim_copy(places);
  return SmallMaps::apply(x, weight, bias, window, shared, parameter);
}

}  // namespace stratagem
