#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/convolution.hpp"
#include "model/exported/instruction.hpp"
#include "model/exported/operator_names.hpp"
#include "model/fused/batch_norm.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

bool takes_optional_tensors(c10::TypePtr const& type) {
  auto const* list = type->castRaw<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

/// Whose floating inputs must have one type.
constexpr std::array<std::string_view, 27> products{"linear",
                                                    "conv1d",
                                                    "conv2d",
                                                    "conv3d",
                                                    "conv_transpose1d",
                                                    "conv_transpose2d",
                                                    "conv_transpose3d",
                                                    "matmul",
                                                    "mm",
                                                    "bmm",
                                                    "addmm",
                                                    "baddbmm",
                                                    "addbmm",
                                                    "addmv",
                                                    "mv",
                                                    "dot",
                                                    "einsum",
                                                    "bilinear",
                                                    "prelu",
                                                    "lstm",
                                                    "gru",
                                                    "rnn_tanh",
                                                    "rnn_relu",
                                                    "searchsorted",
                                                    "lerp",
                                                    "cdist",
                                                    "scaled_dot_product_attention"};
/// Whose further inputs must have the type of the first.
constexpr std::array<std::string_view, 9> assignments{
    "index_put",   "index_add",      "index_copy",     "index_reduce",  "scatter",
    "scatter_add", "scatter_reduce", "masked_scatter", "select_scatter"};

std::string first_line(c10::Error const& error) {
  return split(error.what_without_backtrace(), '\n').front();
}

}  // namespace

bool Instruction::drops(PassContext const& pass) const {
  return pass.context.training && pass.context.dropout && probability_ > 0;
}

void Instruction::run(Registers& registers, PassContext const& pass) const {
  at::AutoGradMode const gradients(at::GradMode::is_enabled() && !node_->without_gradient);
  try {
    execute(registers, pass);
  } catch (c10::OutOfMemoryError const&) {
    throw;
  } catch (c10::Error const& error) {
    refuse(first_line(error));
  }
}

torch::jit::Stack Instruction::arguments(Registers const& registers,
                                         PassContext const& pass) const {
  auto stack = template_;
  auto const value = [&](ValueId id) { return registers[static_cast<std::size_t>(id)]; };
  for (auto const& [position, argument] : slots_) {
    auto& place = stack[position];
    if (auto const* tensor = std::get_if<ExportedArgument::Tensor>(&argument->value)) {
      place = value(tensor->value);
    } else if (auto const* of = std::get_if<ExportedArgument::Integers>(&argument->value)) {
      place = of->value(pass.samples);
    } else if (auto const* tensors = std::get_if<ExportedArgument::Tensors>(&argument->value)) {
      if (takes_optional_tensors(operator_->schema().arguments()[position].type())) {
        c10::List<std::optional<at::Tensor>> list;
        for (auto id : tensors->values)
          list.push_back(id < 0 ? std::nullopt : std::optional(value(id).toTensor()));
        place = list;
      } else {
        c10::List<at::Tensor> list;
        for (auto id : tensors->values) list.push_back(value(id).toTensor());
        place = list;
      }
    } else if (std::holds_alternative<ExportedArgument::Device>(argument->value)) {
      place = pass.device;
    } else {
      place = static_cast<std::int64_t>(floating_type(stack, pass));
    }
  }
  return stack;
}

/// Of an argument that has the model's type in the file. That is the pass's; but fp32 in a model of
/// fp32 may have been meant: a pass in 16 bit keeps it. There, x.float() and x.to(y.dtype) look
/// alike: a conversion of what is fp32 already leads back to the pass's type. What is empty, or
/// goes to a device, takes its type from others.
at::ScalarType Instruction::floating_type(torch::jit::Stack const& stack,
                                          PassContext const& pass) const {
  bool const narrow = c10::elementSize(pass.type) == 2;
  if (!narrow || program_->type != at::kFloat) return pass.type;
  auto const name = node_->base_name();
  if (node_->target == "aten::to.device" || name.find("empty") != name.npos) return pass.type;
  bool const converts = name == "to" || name == "_to_copy";
  bool const back =
      converts && stack[0].isTensor() && stack[0].toTensor().scalar_type() == at::kFloat;
  return back ? pass.type : at::kFloat;
}

/// In a 16-bit pass, where some values are fp32: products are computed in the pass's type, and what
/// is put into a tensor has its type.
void Instruction::unify_types(torch::jit::Stack& stack, PassContext const& pass) const {
  if (c10::elementSize(pass.type) != 2) return;
  bool const multiplies = is_of(products, node_->base_name());
  if (!multiplies && !is_of(assignments, node_->base_name())) return;
  std::set<at::ScalarType> types;
  auto const note = [&](at::Tensor const& tensor) {
    if (tensor.defined() && at::isFloatingType(tensor.scalar_type()))
      types.insert(tensor.scalar_type());
  };
  for (auto const& value : stack) {
    if (value.isTensor()) note(value.toTensor());
    if (value.isTensorList())
      for (auto const& tensor : value.toTensorVector()) note(tensor);
  }
  if (types.size() < 2) return;
  auto const type = multiplies ? pass.type : stack[0].toTensor().scalar_type();
  auto const converted = [&](at::Tensor const& tensor) {
    return tensor.defined() && at::isFloatingType(tensor.scalar_type()) ? tensor.to(type) : tensor;
  };
  for (auto& value : stack) {
    if (value.isTensor()) value = converted(value.toTensor());
    if (!value.isTensorList()) continue;
    c10::List<at::Tensor> list;
    for (auto const& tensor : value.toTensorVector()) list.push_back(converted(tensor));
    value = list;
  }
}

void Instruction::execute(Registers& registers, PassContext const& pass) const {
  auto stack = arguments(registers, pass);
  unify_types(stack, pass);
  auto const result = [&](at::Tensor const& tensor) { stack = {tensor}; };
  switch (kind_) {
    case Kind::batch_norm:
    case Kind::norm:
      normalise(stack, pass);
      break;
    case Kind::convolution:
      if (auto const y = convolved(stack, pass.context.knows_small_maps()))
        result(*y);
      else
        call(stack);
      break;
    case Kind::dropout:
      result(dropped(stack[0].toTensor(), pass));
      break;
    case Kind::attention:
      if (drops(pass)) {
        result(attended(stack, pass));
      } else {
        stack[position("dropout_p")] = 0.0;
        call(stack);
      }
      break;
    case Kind::keep_mask:
      result(kept_samples(stack[0].toTensor(), pass));
      break;
    case Kind::mask_scale:
      if (pass.context.training && pass.context.dropout)
        call(stack);
      else
        result(stack[0].toTensor());
      break;
    case Kind::count_batches:
    case Kind::update:
      if (pass.context.training)
        call(stack);
      else
        result(stack[0].toTensor());
      break;
    case Kind::plain:
      call(stack);
      break;
  }
  store(stack, registers);
}

/// Computed in fp32 if its input is of 16 bit.
void Instruction::normalise(torch::jit::Stack& stack, PassContext const& pass) const {
  auto const x = stack[0].toTensor();
  if (kind_ == Kind::batch_norm) {
    auto const training = position("training");
    use_running_statistics(stack, training, pass);
    if (stack[training].toBool() && x.numel() == x.size(1))
      throw Error(ExitCode::usage, "BatchNorm cannot train on one value per channel",
                  str("module ", node_->module, " has got one sample of one pixel"),
                  "raise the batch of each worker to 2 or more, or data.input_size");
    stack[position("cudnn_enabled")] = pass.device.is_cuda();
    if (auto const y = normed(stack, pass))
      stack = {*y};
    else
      call(stack);
    return;
  }
  if (c10::elementSize(pass.type) == 2)
    for (auto& value : stack)
      if (value.isTensor() && value.toTensor().defined() &&
          c10::elementSize(value.toTensor().scalar_type()) == 2)
        value = value.toTensor().to(at::kFloat);
  if (node_->base_name() == "instance_norm")
    use_running_statistics(stack, position("use_input_stats"), pass);
  call(stack);
  stack[0] = stack[0].toTensor().to(x.scalar_type());
}

/// Of a norm that keeps them, in evaluation: `switch_position` is that of the argument that tells
/// whether the input's own are used.
void Instruction::use_running_statistics(torch::jit::Stack& stack, std::size_t switch_position,
                                         PassContext const& pass) const {
  if (stack[position("running_mean")].isNone()) return;
  auto& own = stack[switch_position];
  own = own.toBool() && pass.context.training;
}

void Instruction::call(torch::jit::Stack& stack) const {
  operator_->callBoxed(&stack);
}

void Instruction::store(torch::jit::Stack& stack, Registers& registers) const {
  auto const& outputs = node_->outputs;
  std::vector<c10::IValue> results(stack.begin(), stack.end());
  if (node_->returns_list) {
    results.clear();
    for (auto const& tensor : stack.front().toTensorVector()) results.emplace_back(tensor);
  }
  if (results.size() != outputs.size())
    refuse(str("it returned ", results.size(), " values, the graph expects ", outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    registers[static_cast<std::size_t>(outputs[i])] = std::move(results[i]);
}

/// Of whole channels, if the operator drops these.
at::Tensor Instruction::dropped(at::Tensor const& x, PassContext const& pass) const {
  if (!drops(pass)) return x;
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().end());
  if (node_->base_name() == "feature_dropout")
    for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = 1;
  auto context = pass.context;
  if (mask_dimension_ < 0) context.first_slot = 0;
  auto const samples = mask_dimension_ < 0 ? 1 : pass.samples;
  if (mask_dimension_ > 0)
    std::rotate(shape.begin(), shape.begin() + mask_dimension_,
                shape.begin() + mask_dimension_ + 1);
  auto const mask = keep_mask(context, node_->name, samples,
                              c10::multiply_integers(shape) / std::max<std::int64_t>(samples, 1),
                              probability_, x.device())
                        .to(x.scalar_type())
                        .div_(1 - probability_)
                        .view(shape)
                        .movedim(0, std::max<std::int64_t>(mask_dimension_, 0));
  return writes_ ? x.mul_(mask) : x * mask;
}

std::optional<at::Tensor> Instruction::normed(torch::jit::Stack const& stack,
                                              PassContext const& pass) const {
  auto const tensor = [&](char const* argument) -> at::Tensor {
    auto const& given = stack[position(argument)];
    return given.isNone() ? at::Tensor() : given.toTensor();
  };
  BatchNormOf const of{.weight = tensor("weight"),
                       .bias = tensor("bias"),
                       .running_mean = tensor("running_mean"),
                       .running_var = tensor("running_var"),
                       .eps = stack[position("eps")].toDouble(),
                       .momentum = stack[position("momentum")].toDouble(),
                       .activation = Activation::none};
  if (!of.weight.defined() || !of.bias.defined() || !of.running_mean.defined()) return std::nullopt;
  return batch_norm(stack[0].toTensor(), {}, of, stack[position("training")].toBool(),
                    pass.context.fused);
}

std::optional<at::Tensor> Instruction::convolved(torch::jit::Stack const& stack, bool fused) const {
  auto const stride = stack[position("stride")].toIntVector(),
             padding = stack[position("padding")].toIntVector(),
             dilation = stack[position("dilation")].toIntVector();
  bool const square = stride.front() == stride.back() && padding.front() == padding.back() &&
                      dilation.front() == 1 && dilation.back() == 1;
  auto const x = stack[0].toTensor(), weight = stack[1].toTensor();
  Window const window{stride.front(), padding.front(), stack[position("groups")].toInt()};
  if (!fused || !square || !is_of_small_maps(x, weight, window)) return std::nullopt;
  return convolve(x, weight, stack[2].toOptional<at::Tensor>(), window, fused);
}

/// Attention with dropout of its weights, in the open.
at::Tensor Instruction::attended(torch::jit::Stack const& stack, PassContext const& pass) const {
  auto const query = stack[0].toTensor(), key = stack[1].toTensor(), value = stack[2].toTensor();
  auto const& mask = stack[position("attn_mask")];
  auto const& given = stack[position("scale")];
  double const scale =
      given.isNone() ? 1 / std::sqrt(static_cast<double>(query.size(-1))) : given.toDouble();
  auto scores = at::matmul(query * scale, key.transpose(-2, -1));
  constexpr auto never = -std::numeric_limits<double>::infinity();
  if (stack[position("is_causal")].toBool()) {
    auto const allowed =
        at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(allowed.logical_not(), never);
  }
  if (mask.isTensor()) {
    auto const& bias = mask.toTensor();
    scores = bias.scalar_type() == at::kBool ? scores.masked_fill(bias.logical_not(), never)
                                             : scores + bias;
  }
  return at::matmul(dropped(at::softmax(scores, -1), pass), value);
}

/// Per sample, or one for the whole batch where the mask has no dimension of samples. The first
/// argument of bernoulli_ is overwritten.
at::Tensor Instruction::kept_samples(at::Tensor const& target, PassContext const& pass) const {
  at::NoGradGuard const no_gradients;
  if (!drops(pass)) return target.fill_(1);
  auto const& shape = program_->value(node_->outputs.front()).shape;
  bool const by_sample = !shape.empty() && shape.front().is_samples();
  auto context = pass.context;
  if (!by_sample) context.first_slot = 0;
  auto const samples = by_sample ? pass.samples : 1;
  auto const mask = keep_mask(context, node_->name, samples, target.numel() / samples, probability_,
                              target.device());
  return target.copy_(mask.view(target.sizes()));
}

}  // namespace stratagem
