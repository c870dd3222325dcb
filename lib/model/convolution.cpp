#include "model/convolution.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/depthwise.hpp"
#include "model/gradient_places.hpp"
#include "model/landing.hpp"
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

/// What the backward pass of a convolution needs.
void keep(AutogradContext* context, at::Tensor const& x, at::Tensor const& weight, bool biased,
          Window const& window, OfBlock const& of) {
  context->save_for_backward({x, weight});
  context->saved_data["biased"] = biased;
  context->saved_data["window"] =
      std::vector<std::int64_t>{window.stride, window.padding, window.groups};
  context->saved_data["weight"] = of.weight;
  context->saved_data["bias"] = of.bias;
  if (of.places == nullptr) return;
  auto const places = c10::intrusive_ptr<GradientPlaces>::reclaim_copy(of.places);
  context->saved_data["places"] = c10::IValue::make_capsule(places);
}

Window window_of(AutogradContext* context) {
  auto const kept = context->saved_data["window"].toIntVector();
  return {kept[0], kept[1], kept[2]};
}

/// Its places live as long as the context.
OfBlock block_of(AutogradContext* context) {
  OfBlock of{nullptr, context->saved_data["weight"].toInt(), context->saved_data["bias"].toInt()};
  if (auto const found = context->saved_data.find("places"); found != context->saved_data.end())
    of.places = &static_cast<GradientPlaces&>(*found->second.toCapsule());
  return of;
}

class SmallMaps : public torch::autograd::Function<SmallMaps> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x, at::Tensor const& weight,
                            std::optional<at::Tensor> const& bias, Window const& window,
                            OfBlock const& of) {
    keep(context, x, weight, bias.has_value(), window, of);
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
    TapPlan const plan(x, weight, window_of(context));
    auto const own = x.scalar_type(), type = type_of_sums(plan, own);
    auto const y = rows_of(in_channels_last(gradients[0])).to(type);
    variable_list result(5);
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
    auto const of = block_of(context);
    if (of.places == nullptr) return {};
    auto const place = of.places->take(of.weight);
    bool const suits = place.defined() && place.scalar_type() == weight.scalar_type() &&
                       place.is_contiguous(at::MemoryFormat::ChannelsLast);
    if (!suits) return {};
    of.places->landed[static_cast<std::size_t>(of.weight)] = true;
    return place;
  }
};

/// Lets observers see it as they see LibTorch's, with the inputs of aten::convolution.
class Observed {
 public:
  Observed(at::Tensor const& x, at::Tensor const& weight, Window const& window) {
    if (!record_.isActive()) return;
    auto const both = [](std::int64_t value) { return std::vector<std::int64_t>{value, value}; };
    inputs_ = {x,       weight, c10::IValue(), both(window.stride), both(window.padding),
               both(1), false,  both(0),       window.groups};
    record_.before(small_maps_convolution, &inputs_);
  }

 private:
  std::vector<c10::IValue> inputs_;
  at::RecordFunction record_{at::RecordScope::FUNCTION};
};

/// LibTorch's, with its bits.
class OfLibrary : public torch::autograd::Function<OfLibrary> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x, at::Tensor const& weight,
                            std::optional<at::Tensor> const& bias, Window const& window,
                            OfBlock const& of) {
    keep(context, x, weight, bias.has_value(), window, of);
    return compute(x, weight, bias, window);
  }

  static at::Tensor compute(at::Tensor const& x, at::Tensor const& weight,
                            std::optional<at::Tensor> const& bias, Window const& window) {
    return at::conv2d(x, weight, bias, window.stride, window.padding, 1, window.groups);
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const saved = context->get_saved_variables();
    auto const &x = saved[0], &weight = saved[1], &of_y = gradients[0];
    auto const window = window_of(context);
    bool const biased = context->saved_data["biased"].toBool();
    auto const bias_sizes = weight.sizes().slice(0, 1);
    auto const compute = [&](std::array<bool, 3> const& which) {
      return at::convolution_backward(
          of_y, x, weight, biased ? at::OptionalIntArrayRef(bias_sizes) : std::nullopt,
          {window.stride, window.stride}, {window.padding, window.padding}, {1, 1}, false, {0, 0},
          window.groups, which);
    };
    std::array<bool, 3> left{context->needs_input_grad(0), context->needs_input_grad(1), biased};
    auto const of = block_of(context);
    auto const land = [&](std::size_t which, std::int64_t parameter) {
      auto const place = left[which] ? of.places->take_beside(parameter, x) : at::Tensor();
      if (!place.defined()) return;
      left[which] = false;
      std::array<bool, 3> only{};
      only[which] = true;
      of.places->land(parameter, {x, of_y}, [&] {
        auto const [_, of_weight, of_bias] = compute(only);
        replace({place}, {which == 1 ? of_weight : of_bias});
      });
    };
    land(1, of.weight);
    land(2, of.bias);
    variable_list result(5);
    if (left[0] || left[1] || left[2]) std::tie(result[0], result[1], result[2]) = compute(left);
    return result;
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
                    OfBlock const& of) {
  bool const differentiates = at::GradMode::is_enabled();
  if (fused && is_of_small_maps(x, weight, window)) {
    Observed const observed(x, weight, window);
    return differentiates ? SmallMaps::apply(x, weight, bias, window, of)
                          : SmallMaps::compute(x, weight, bias, window);
  }
  bool const lands = differentiates && x.is_cuda() && of.places != nullptr;
  return lands ? OfLibrary::apply(x, weight, bias, window, of)
               : OfLibrary::compute(x, weight, bias, window);
}

}  // namespace stratagem
