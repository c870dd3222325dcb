#include "predict/flop_counter.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include "model/convolution.hpp"

namespace stratagem {
namespace {

thread_local double counted = 0;

double elements(at::Tensor const& tensor) {
  return static_cast<double>(tensor.numel());
}

/// [..., m, k] times [k, n] or [..., k, n].
double of_product(at::Tensor const& a, at::Tensor const& b) {
  return 2 * elements(a) * static_cast<double>(b.size(-1));
}

/// What a convolution is told for one dimension: a list has one number for each, or one for all.
std::int64_t of_dimension(c10::IValue const& list, std::int64_t dimension) {
  auto const numbers = list.toIntVector();
  return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(dimension)];
}

/// Weight [out, in / groups, ...]: all of it meets every pixel of the output, or of the input if
/// the convolution is transposed. Inputs are those of aten::convolution.
double of_convolution(c10::ArrayRef<c10::IValue const> inputs) {
  auto const &input = inputs[0].toTensor(), &weight = inputs[1].toTensor();
  bool const transposed = inputs[6].toBool();
  auto pixels = static_cast<double>(input.size(0));
  for (std::int64_t i = 2; i < input.dim(); ++i) {
    auto const stride = of_dimension(inputs[3], i - 2), padding = of_dimension(inputs[4], i - 2),
               dilation = of_dimension(inputs[5], i - 2);
    auto const reach = dilation * (weight.size(i) - 1) + 1;
    auto const outputs = (input.size(i) + 2 * padding - reach) / stride + 1;
    pixels *= static_cast<double>(transposed ? input.size(i) : outputs);
  }
  return 2 * pixels * elements(weight);
}

/// Queries [n, heads, length, width].
double of_attention(at::Tensor const& query, at::Tensor const& key, at::Tensor const& value) {
  auto const scores =
      elements(query) / static_cast<double>(query.size(-1)) * static_cast<double>(key.size(-2));
  return 2 * scores * static_cast<double>(query.size(-1) + value.size(-1));
}

/// One layer and direction of an LSTM, as oneDNN runs it: input [length, n, in], weights [4 hidden,
/// in] and [4 hidden, hidden].
double of_lstm(at::Tensor const& input, at::Tensor const& of_input, at::Tensor const& of_hidden) {
  auto const steps = static_cast<double>(input.size(0) * input.size(1));
  return 2 * steps * (elements(of_input) + elements(of_hidden));
}

double flops_of(at::RecordFunction const& call) {
  std::string_view const name = call.name();
  auto const inputs = call.inputs();
  auto const tensor = [&](std::size_t i) -> at::Tensor const& { return inputs[i].toTensor(); };
  if (name == "aten::mm" || name == "aten::bmm") return of_product(tensor(0), tensor(1));
  if (name == "aten::addmm" || name == "aten::baddbmm") return of_product(tensor(1), tensor(2));
  if (name == "aten::convolution" || name == small_maps_convolution) return of_convolution(inputs);
  if (name == "aten::mkldnn_rnn_layer") return of_lstm(tensor(0), tensor(1), tensor(2));
  if (name.starts_with("aten::_scaled_dot_product_"))
    return of_attention(tensor(0), tensor(1), tensor(2));
  return 0;
}

}  // namespace

FlopCounter::FlopCounter() {
  counted = 0;
  auto const count = [](at::RecordFunction const& call) -> std::unique_ptr<at::ObserverContext> {
    counted += flops_of(call);
    return nullptr;
  };
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(count).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

FlopCounter::~FlopCounter() {
  at::removeCallback(handle_);
}

double FlopCounter::take() {
  return std::exchange(counted, 0);
}

}  // namespace stratagem
