#include "model/exported/instruction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <c10/util/Exception.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/layers.hpp"

namespace stratagem {
namespace {

using Kind = Instruction::Kind;

struct Special {
  std::string_view target;
  Kind kind;
};
constexpr std::array<Special, 10> specials{{{"aten::batch_norm", Kind::batch_norm},
                                            {"aten::layer_norm", Kind::norm},
                                            {"aten::group_norm", Kind::norm},
                                            {"aten::instance_norm", Kind::norm},
                                            {"aten::rms_norm", Kind::norm},
                                            {"aten::dropout", Kind::dropout},
                                            {"aten::dropout_", Kind::dropout},
                                            {"aten::feature_dropout", Kind::dropout},
                                            {"aten::scaled_dot_product_attention", Kind::attention},
                                            {"aten::bernoulli_.float", Kind::keep_mask}}};

/// Whose texts are modes or formulas. Others may name files.
constexpr std::array<std::string_view, 8> with_texts{"conv1d", "conv2d", "conv3d", "div",
                                                     "einsum", "gelu",   "pad",    "searchsorted"};

/// `aten::div_.Tensor_mode` -> `div`.
std::string_view base_name(std::string_view target) {
  target.remove_prefix(target.find("::") + 2);
  target = target.substr(0, target.find('.'));
  if (target.ends_with('_')) target.remove_suffix(1);
  return target;
}

c10::OperatorName name_of(std::string const& target) {
  auto const point = target.find('.');
  if (point == std::string::npos) return {target, ""};
  return {target.substr(0, point), target.substr(point + 1)};
}

/// The type within an optional type.
c10::TypePtr inner(c10::TypePtr const& type) {
  auto const* optional = type->castRaw<c10::OptionalType>();
  return optional == nullptr ? type : optional->getElementType();
}

bool is_tensor(c10::TypePtr const& type) {
  return inner(type)->kind() == c10::TypeKind::TensorType;
}

bool takes_no_tensor_twice(c10::TypePtr const& type) {
  auto const* list = type->castRaw<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

c10::IValue integers(ExportedArgument::Integers const& of, std::int64_t samples) {
  if (!of.is_list) return of.extents.front().of(samples);
  c10::List<std::int64_t> list;
  for (auto const& extent : of.extents) list.push_back(extent.of(samples));
  return list;
}

/// A number where a tensor is expected takes part in type promotion as a number.
c10::IValue as_tensor(c10::IValue const& number) {
  return at::native::wrapped_scalar_tensor(number.toScalar());
}

std::string first_line(c10::Error const& error) {
  return split(error.what_without_backtrace(), '\n').front();
}

}  // namespace

Instruction::Instruction(ExportedProgram const& program, ExportedNode const& node)
    : program_(&program), node_(&node) {
  constexpr std::string_view known = "aten::";
  if (!node.target.starts_with(known))
    refuse("only operators of aten can be run",
           node.target.starts_with("higher_order::")
               ? "leave out control flow and torch.no_grad() in forward()"
               : "");
  // A view of images in format channels_last may need a copy.
  auto const name = node.target == "aten::view" ? "aten::reshape" : node.target;
  operator_ = c10::Dispatcher::singleton().findSchema(name_of(name));
  if (!operator_) refuse("this LibTorch has no such operator");
  for (auto const& [target, kind] : specials)
    if (node.target == target) kind_ = kind;
  bind();
  choose_kind();
}

void Instruction::refuse(std::string const& why, std::string const& cure) const {
  throw Error(
      ExitCode::bad_data,
      str("model file ", program_->path, ": operator ", node_->target, " ", node_->name,
          node_->module.empty() ? "" : str(" of module ", node_->module),
          node_->location.empty() ? "" : str(" (", node_->location, ")"), " cannot be used"),
      why, cure);
}

void Instruction::bind() {
  auto const& schema = operator_->schema();
  std::size_t given = 0;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    auto const& wanted = schema.arguments()[i];
    bool const renamed = node_->target == "aten::view" && wanted.name() == "shape";
    auto const found = std::ranges::find(node_->arguments, renamed ? "size" : wanted.name(),
                                         &ExportedArgument::name);
    bool const writes = wanted.alias_info() != nullptr && wanted.alias_info()->isWrite();
    if (writes && i > 0) refuse("it writes an argument other than its first");
    writes_ = writes_ || writes;
    if (found == node_->arguments.end()) {
      if (!wanted.default_value()) refuse(str("its argument ", wanted.name(), " is missing"));
      template_.push_back(*wanted.default_value());
      continue;
    }
    ++given;
    template_.emplace_back();
    bind_argument(i, *found);
    note_inputs(*found, wanted.alias_info() != nullptr);
  }
  if (given != node_->arguments.size()) refuse("it has arguments that its schema does not know");
  auto const shares = [](c10::Argument const& returned) {
    return returned.alias_info() != nullptr;
  };
  bool const may_alias = kind_ == Kind::dropout || std::ranges::any_of(schema.returns(), shares);
  if (kind_ == Kind::dropout) aliased_ = {inputs_.front()};
  if (!may_alias) aliased_.clear();
}

void Instruction::note_inputs(ExportedArgument const& argument, bool aliased) {
  auto const note = [&](ValueId value) {
    if (value < 0) return;
    inputs_.push_back(value);
    if (aliased) aliased_.push_back(value);
  };
  if (auto const* tensor = std::get_if<ExportedArgument::Tensor>(&argument.value))
    note(tensor->value);
  if (auto const* tensors = std::get_if<ExportedArgument::Tensors>(&argument.value))
    for (auto value : tensors->values) note(value);
}

void Instruction::bind_argument(std::size_t position, ExportedArgument const& argument) {
  auto const& type = operator_->schema().arguments()[position].type();
  auto& place = template_[position];
  bool const text = inner(type)->kind() == c10::TypeKind::StringType;
  if (text && std::ranges::find(with_texts, base_name(node_->target)) == with_texts.end())
    refuse("it takes a text, which could name a file");
  if (auto const* constant = std::get_if<c10::IValue>(&argument.value)) {
    place = is_tensor(type) && constant->isScalar() ? as_tensor(*constant) : *constant;
  } else if (auto const* of = std::get_if<ExportedArgument::Integers>(&argument.value)) {
    auto const fixed = [](Extent const& extent) { return extent.per_sample == 0; };
    if (!of->is_list && is_tensor(type)) {
      if (!fixed(of->extents.front())) refuse("it computes with the number of samples");
      place = as_tensor(integers(*of, 0));
    } else if (!of->is_list && inner(type)->kind() == c10::TypeKind::FloatType) {
      if (!fixed(of->extents.front())) refuse("it computes with the number of samples");
      place = static_cast<double>(of->extents.front().fixed);
    } else if (std::ranges::all_of(of->extents, fixed)) {
      place = integers(*of, 0);
    } else {
      slots_.push_back({position, &argument});
    }
  } else {
    slots_.push_back({position, &argument});
  }
}

std::size_t Instruction::position(std::string const& argument) const {
  auto const index = operator_->schema().argumentIndexWithName(argument);
  if (!index) refuse(str("this LibTorch's schema has no argument ", argument));
  return static_cast<std::size_t>(*index);
}

template <class T>
T Instruction::constant(std::string const& argument) const {
  auto const& value = template_[position(argument)];
  if constexpr (std::is_same_v<T, bool>) {
    if (value.isBool()) return value.toBool();
  } else {
    if (value.isDouble() || value.isInt()) return value.toScalar().to<T>();
  }
  refuse(str("its argument ", argument, " is not a constant"));
}

std::optional<ValueId> Instruction::tensor(std::string const& argument) const {
  auto const found = std::ranges::find(node_->arguments, argument, &ExportedArgument::name);
  if (found == node_->arguments.end()) return std::nullopt;
  auto const* tensor = std::get_if<ExportedArgument::Tensor>(&found->value);
  return tensor == nullptr ? std::nullopt : std::optional(tensor->value);
}

void Instruction::choose_kind() {
  if (operator_->hasTag(at::Tag::data_dependent_output))
    refuse("its result depends on data in a way that torch.export cannot describe");
  auto const& first = program_->value(inputs_.empty() ? program_->input : inputs_.front()).shape;
  bool const by_sample = !first.empty() && first.front().is_samples();
  if (kind_ == Kind::dropout) {
    probability_ = constant<double>("p");
    if (!constant<bool>("train")) probability_ = 0;
    if (probability_ > 0 && !by_sample)
      refuse("random masks belong to samples, which must be the first dimension",
             "drop before samples are mixed with other dimensions");
  } else if (kind_ == Kind::attention) {
    probability_ = constant<double>("dropout_p");
    if (probability_ > 0 && (!by_sample || first.size() < 3 || constant<bool>("enable_gqa")))
      refuse("random masks belong to samples, which must be the first dimension of the queries",
             "leave out attention's dropout, or enable_gqa");
  } else if (kind_ == Kind::keep_mask) {
    probability_ = 1 - constant<double>("p");
    bool const fixed =
        std::ranges::all_of(first, [](Extent const& e) { return e.per_sample == 0; });
    if (!by_sample && !fixed)
      refuse("random masks belong to samples, which must be the first dimension");
  } else if (operator_->hasTag(at::Tag::nondeterministic_seeded)) {
    refuse(
        "random numbers are known here only as dropout, and as bernoulli_ divided by its "
        "probability: others would not be the same on every rank");
  }
  if (probability_ < 0 || probability_ >= 1)
    refuse(str("it drops with probability ", probability_, ", which must be below 1"));
}

bool Instruction::drops(PassContext const& pass) const {
  return pass.context.training && pass.context.dropout && probability_ > 0;
}

void Instruction::run(Registers& registers, PassContext const& pass) const {
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
      place = integers(*of, pass.samples);
    } else if (auto const* tensors = std::get_if<ExportedArgument::Tensors>(&argument->value)) {
      if (takes_no_tensor_twice(operator_->schema().arguments()[position].type())) {
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
      place = static_cast<std::int64_t>(pass.type);
    }
  }
  return stack;
}

void Instruction::execute(Registers& registers, PassContext const& pass) const {
  auto stack = arguments(registers, pass);
  auto const result = [&](at::Tensor const& tensor) { stack = {tensor}; };
  switch (kind_) {
    case Kind::batch_norm: {
      auto const& x = stack[0].toTensor();
      auto const training = position("training");
      bool const has_statistics = !stack[position("running_mean")].isNone();
      if (has_statistics) stack[training] = stack[training].toBool() && pass.context.training;
      if (stack[training].toBool() && x.numel() == x.size(1))
        throw Error(ExitCode::usage, "BatchNorm cannot train on one value per channel",
                    str("module ", node_->module, " has got one sample of one pixel"),
                    "raise the batch of each worker to 2 or more, or data.input_size");
      stack[position("cudnn_enabled")] = pass.device.is_cuda();
      call(stack);
      break;
    }
    case Kind::norm: {
      bool const narrow = c10::elementSize(pass.type) == 2;
      if (narrow) stack[0] = stack[0].toTensor().to(at::kFloat);
      call(stack);
      if (narrow) result(stack[0].toTensor().to(pass.type));
      break;
    }
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
  if (node_->target == "aten::feature_dropout")
    for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = 1;
  std::int64_t count = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) count *= shape[i];
  auto const mask =
      keep_mask(pass.context, node_->name, pass.samples, count, probability_, x.device())
          .to(x.scalar_type())
          .div_(1 - probability_)
          .view(shape);
  return writes_ ? x.mul_(mask) : x * mask;
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
