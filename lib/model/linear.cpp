#include "model/linear.hpp"

#include <cstdint>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/gradient_places.hpp"
#include "model/landing.hpp"

namespace stratagem {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor rows_of(at::Tensor const& x) {
  return x.reshape({-1, x.size(-1)});
}

at::Tensor multiply(at::Tensor const& x, at::Tensor const& weight,
                    std::optional<at::Tensor> const& bias, WeightLayout layout) {
  if (layout == WeightLayout::out_in) return at::linear(x, weight, bias);
  auto const rows = rows_of(x);
  auto const product = bias ? at::addmm(*bias, rows, weight) : at::mm(rows, weight);
  auto sizes = x.sizes().vec();
  sizes.back() = weight.size(1);
  return product.view(sizes);
}

/// LibTorch's product of 16-bit factors that is not rounded to 16 bit; not in every version.
using WideProduct = at::Tensor&(at::Tensor const&, at::Tensor const&, at::ScalarType, at::Tensor&);
std::optional<c10::TypedOperatorHandle<WideProduct>> const& wide_product() {
  static auto const product = []() -> std::optional<c10::TypedOperatorHandle<WideProduct>> {
    auto const found = c10::Dispatcher::singleton().findSchema({"aten::mm", "dtype_out"});
    if (!found) return std::nullopt;
    return found->typed<WideProduct>();
  }();
  return product;
}

/// Whether LibTorch can write a product there.
bool takes_product(at::Tensor const& place, at::Tensor const& a) {
  if (!place.defined() || !place.is_contiguous()) return false;
  return place.scalar_type() == a.scalar_type() ||
         (a.is_cuda() && a.element_size() == 2 && place.scalar_type() == at::kFloat &&
          wide_product());
}

/// place <- a b
void multiply_into(at::Tensor place, at::Tensor const& a, at::Tensor const& b) {
  if (place.scalar_type() == a.scalar_type())
    at::mm_out(place, a, b);
  else
    wide_product()->call(a, b, at::kFloat, place);
}

class Product : public torch::autograd::Function<Product> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& x, at::Tensor const& weight,
                            std::optional<at::Tensor> const& bias,
                            c10::intrusive_ptr<GradientPlaces> const& places,
                            std::int64_t of_weight, std::int64_t of_bias, WeightLayout layout) {
    context->save_for_backward({x, weight});
    context->saved_data["places"] = c10::IValue::make_capsule(places);
    context->saved_data["weight"] = of_weight;
    context->saved_data["bias"] = of_bias;
    context->saved_data["in_out"] = layout == WeightLayout::in_out;
    return multiply(x, weight, bias, layout);
  }

  static variable_list backward(AutogradContext* context, variable_list const& gradients) {
    auto const saved = context->get_saved_variables();
    auto const &x = saved[0], &weight = saved[1];
    auto const gradient = rows_of(gradients[0]);
    bool const in_out = context->saved_data["in_out"].toBool();
    auto const capsule = context->saved_data["places"].toCapsule();
    auto& places = static_cast<GradientPlaces&>(*capsule);
    variable_list result(7);
    if (context->needs_input_grad(1)) {
      auto const rows = rows_of(x);
      auto const a = (in_out ? rows : gradient).t(), b = in_out ? gradient : rows;
      auto const parameter = context->saved_data["weight"].toInt();
      if (auto const place = places.take(parameter); takes_product(place, a))
        places.land(parameter, {rows, gradient}, [&] { multiply_into(place, a, b); });
      else
        result[1] = at::mm(a, b);
    }
    if (auto const parameter = context->saved_data["bias"].toInt(); parameter >= 0) {
      if (auto const place = places.take_beside(parameter, gradient); place.defined())
        places.land(parameter, {gradient}, [&] { replace({place}, {gradient.sum(0)}); });
      else
        result[2] = gradient.sum(0);
    }
    auto const factor = in_out ? weight.t() : weight;
    if (context->needs_input_grad(0) && places.adds_to(x))
      rows_of(places.of_input).addmm_(gradient, factor);
    else if (context->needs_input_grad(0))
      result[0] = at::mm(gradient, factor).view(x.sizes());
    return result;
  }
};

}  // namespace

at::Tensor linear(at::Tensor const& x, Frame const& frame, int weight, int bias,
                  WeightLayout layout) {
  auto const& of_weight = frame.parameters[static_cast<std::size_t>(weight)];
  std::optional<at::Tensor> of_bias;
  if (bias >= 0) of_bias = frame.parameters[static_cast<std::size_t>(bias)];
  if (frame.places == nullptr || !at::GradMode::is_enabled())
    return multiply(x, of_weight, of_bias, layout);
  auto const places = c10::intrusive_ptr<GradientPlaces>::reclaim_copy(frame.places);
  return Product::apply(x, of_weight, of_bias, places, weight, bias, layout);
}

}  // namespace stratagem
