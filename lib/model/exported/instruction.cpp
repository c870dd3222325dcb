#include "model/exported/instruction.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

using Kind = Instruction::Kind;

struct Special {
  std::string_view target;
  Kind kind;
};
constexpr std::array<Special, 11> specials{{{"aten::conv2d", Kind::convolution},
                                            {"aten::batch_norm", Kind::batch_norm},
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

/// A number where a tensor is expected takes part in type promotion as a number.
c10::IValue as_tensor(c10::IValue const& number) {
  return at::native::wrapped_scalar_tensor(number.toScalar());
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
  stratagem::refuse(*program_, *node_, why, cure);
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
  if (text && std::ranges::find(with_texts, node_->base_name()) == with_texts.end())
    refuse("it takes a text, which could name a file");
  if (auto const* constant = std::get_if<c10::IValue>(&argument.value)) {
    place = is_tensor(type) && constant->isScalar() ? as_tensor(*constant) : *constant;
  } else if (auto const* of = std::get_if<ExportedArgument::Integers>(&argument.value)) {
    auto const fixed = [](Extent const& extent) { return extent.per_sample == 0; };
    if (!of->is_list && is_tensor(type)) {
      if (!fixed(of->extents.front())) refuse("it computes with the number of samples");
      place = as_tensor(of->value(0));
    } else if (!of->is_list && inner(type)->kind() == c10::TypeKind::FloatType) {
      if (!fixed(of->extents.front())) refuse("it computes with the number of samples");
      place = static_cast<double>(of->extents.front().fixed);
    } else if (std::ranges::all_of(of->extents, fixed)) {
      place = of->value(0);
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

}  // namespace stratagem
