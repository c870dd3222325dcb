#include "model/exported/instruction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "base/text.hpp"
#include "model/exported/operator_names.hpp"
#include "model/exported/sample_order.hpp"

namespace stratagem {
namespace {

using Kind = Instruction::Kind;

struct Special {
  std::string_view target;
  Kind kind;
};
constexpr std::array<Special, 12> specials{{{"aten::conv2d", Kind::convolution},
                                            {"aten::batch_norm", Kind::batch_norm},
                                            {"aten::layer_norm", Kind::norm},
                                            {"aten::group_norm", Kind::norm},
                                            {"aten::instance_norm", Kind::norm},
                                            {"aten::rms_norm", Kind::norm},
                                            {"aten::dropout", Kind::dropout},
                                            {"aten::dropout_", Kind::dropout},
                                            {"aten::feature_dropout", Kind::dropout},
                                            {"aten::feature_dropout_", Kind::dropout},
                                            {"aten::scaled_dot_product_attention", Kind::attention},
                                            {"aten::bernoulli_.float", Kind::keep_mask}}};

/// Arguments whose texts are modes or formulas. Others may name files.
constexpr std::array<std::string_view, 15> texts{
    "approximate",   "compute_mode", "driver",    "equation", "indexing",
    "interpolation", "mode",         "norm",      "ord",      "pad_mode",
    "padding",       "reduce",       "reduction", "side",     "rounding_mode"};

/// Which may return their first argument, or parts of the tensors that they get, though their
/// schemas do not say so.
constexpr std::array<std::string_view, 10> sharing{
    "dropout",    "feature_dropout", "type_as",    "broadcast_tensors", "meshgrid",
    "atleast_1d", "atleast_2d",      "atleast_3d", "sum_to_size",       "_unsafe_view"};

/// Which copy where strides do not let them return a view.
constexpr std::array<std::string_view, 8> copying{
    "view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "contiguous", "_unsafe_view"};

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
    refuse("only operators of aten can be run", "write it with operators of PyTorch");
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
  bool const undeclared = is_of(sharing, node_->base_name());
  if (undeclared) aliased_ = inputs_;
  if (!undeclared && std::ranges::none_of(schema.returns(), shares)) aliased_.clear();
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
  if (text && !is_of(texts, argument.name)) refuse("it takes a text, which could name a file");
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

bool Instruction::has(std::string const& argument) const {
  return operator_->schema().argumentIndexWithName(argument).has_value();
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

double Instruction::number(std::string const& argument) const {
  if (!has(argument)) return std::nan("");
  auto const& value = template_[position(argument)];
  if (value.isDouble() || value.isInt()) return value.toScalar().toDouble();
  bool const wrapped =
      value.isTensor() && value.toTensor().defined() && value.toTensor().dim() == 0;
  return wrapped ? value.toTensor().item<double>() : std::nan("");
}

std::optional<bool> Instruction::flag(std::string const& argument) const {
  if (!has(argument)) return std::nullopt;
  auto const& value = template_[position(argument)];
  return value.isBool() ? std::optional(value.toBool()) : std::nullopt;
}

bool Instruction::copies_by_strides() const {
  auto const name = node_->base_name();
  bool const to_format =
      name == "to" && has("memory_format") && !template_[position("memory_format")].isNone();
  return node_->target != "aten::view.dtype" && (to_format || is_of(copying, name));
}

bool Instruction::draws_nothing() const {
  if (flag("train") == false || flag("training") == false) return true;
  auto const name = node_->base_name();
  bool const recurrent = name == "lstm" || name == "gru" || name.starts_with("rnn_");
  if (recurrent) return number("dropout") == 0 || number("num_layers") == 1;
  return name.ends_with("dropout") && number("p") == 0;
}

void Instruction::choose_kind() {
  if (operator_->hasTag(at::Tag::data_dependent_output))
    refuse("its result depends on data in a way that torch.export cannot describe");
  auto const& first = program_->value(inputs_.empty() ? program_->input : inputs_.front()).shape;
  bool const by_sample = !first.empty() && first.front().is_samples();
  if (kind_ == Kind::dropout) {
    probability_ = constant<double>("p");
    if (!constant<bool>("train")) probability_ = 0;
    if (probability_ > 0) choose_mask();
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
  } else if (operator_->hasTag(at::Tag::nondeterministic_seeded) && !draws_nothing()) {
    auto const name = node_->base_name();
    if (name == "lstm" || name == "gru" || name.starts_with("rnn_"))
      refuse(
          "it drops between its layers, with random numbers that would not be the same on every "
          "rank",
          "give each layer a module of its own, with torch.nn.Dropout between them");
    refuse(
        "random numbers are known here only as dropout, and as bernoulli_ divided by its "
        "probability: others would not be the same on every rank");
  }
  if (probability_ < 0 || probability_ >= 1)
    refuse(str("it drops with probability ", probability_, ", which must be below 1"));
}

/// Masks belong to samples: finds these in what is dropped.
void Instruction::choose_mask() {
  auto const& shape = program_->value(inputs_.front()).shape;
  auto const depends = [](Extent const& extent) { return extent.per_sample != 0; };
  auto const found = std::ranges::find_if(shape, depends);
  mask_dimension_ = found == shape.end() ? -1 : found - shape.begin();
  bool const first = mask_dimension_ == 0 && found->is_samples();
  if (first) return;
  bool const channels = node_->base_name() == "feature_dropout";
  if (channels) refuse("it drops channels, and its first dimension is not that of the samples");
  if (mask_dimension_ < 0) return;
  bool const alone = std::ranges::count_if(shape, depends) == 1;
  if (alone && (found->is_samples() || samples_lead(*program_, inputs_.front()))) return;
  refuse("random masks belong to samples, which it has mixed with another dimension",
         "drop before samples are mixed with other dimensions");
}

}  // namespace stratagem
