#include "model/exported/file/graph_values.hpp"

#include "base/text.hpp"
#include "model/exported/file/export_types.hpp"

namespace stratagem {
namespace {

/// Empty for a square of the number of samples, and beyond 64 bits.
std::optional<Extent> product(Extent const& a, Extent const& b) {
  Extent result;
  auto const& factor = a.per_sample == 0 ? a : b;
  auto const& other = a.per_sample == 0 ? b : a;
  bool const known = factor.per_sample == 0 &&
                     !__builtin_mul_overflow(factor.fixed, other.fixed, &result.fixed) &&
                     !__builtin_mul_overflow(factor.fixed, other.per_sample, &result.per_sample);
  return known ? std::optional(result) : std::nullopt;
}

}  // namespace

GraphValues::GraphValues(Fields const& fields, Json const& graph, Json const& signature)
    : fields_(fields) {
  find_samples(graph, signature);
  for (auto const& [name, meta] : fields_.object(graph, "tensor_values").items())
    read_tensor(name, meta);
  read_integers(fields_.object(graph, "sym_int_values"));
  find_floating_type(signature);
}

void GraphValues::find_floating_type(Json const& signature) {
  floating_type_ = value(find(input_, "the graph")).type;
  if (!at::isFloatingType(floating_type_)) floating_type_ = at::kFloat;
  for (auto const& spec : fields_.array(signature, "input_specs")) {
    auto const [kind, content] = fields_.tagged(spec, "an input of its graph");
    if (kind != "parameter") continue;
    auto const name = fields_.text(fields_.member(content, "arg"), "name");
    auto const type = value(find(name, "the graph")).type;
    if (!at::isFloatingType(type)) continue;
    floating_type_ = type;
    return;
  }
}

GraphValues::Names GraphValues::enter(Json const& graph, std::vector<ValueId> const& values) {
  auto around = ids_;
  auto const& inputs = fields_.array(graph, "inputs");
  if (inputs.size() != values.size()) fields_.refuse("a graph within its graph has other inputs");
  std::map<std::string, ValueId> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto const [kind, input] = fields_.tagged(inputs[i], "an input of a graph within its graph");
    if (kind == "as_tensor") given.emplace(fields_.text(input, "name"), values[i]);
  }
  for (auto const& [name, meta] : fields_.object(graph, "tensor_values").items())
    if (!given.contains(name)) read_tensor(name, meta);
  for (auto const& [name, value] : given) rename(name, value);
  read_integers(fields_.object(graph, "sym_int_values"));
  return around;
}

/// The symbol of the input's first extent is the number of samples.
void GraphValues::find_samples(Json const& graph, Json const& signature) {
  auto const& values = fields_.object(graph, "tensor_values");
  auto const refuse = [&](std::string const& why) {
    fields_.archive().refuse(why, "wrap the model in one that takes one tensor");
  };
  for (auto const& spec : fields_.array(signature, "input_specs")) {
    auto const [kind, content] = fields_.tagged(spec, "an input of its graph");
    if (kind != "user_input") continue;
    auto const [type, argument] =
        fields_.tagged(fields_.member(content, "arg"), "an input of its graph");
    if (type != "as_tensor") refuse("an input of the model is not a tensor");
    if (!input_.empty()) refuse("the model has several inputs");
    input_ = fields_.text(argument, "name");
    auto const& sizes = fields_.array(fields_.member(values, input_.c_str()), "sizes");
    if (sizes.empty()) refuse("the model's input has no dimension for samples");
    auto const [of, size] = fields_.tagged(sizes[0], "a size of the model's input");
    if (of != "as_expr")
      fields_.archive().refuse(
          str("it was exported for exactly ", size.dump(), " samples"),
          "export it with a dynamic first dimension, as analysis/export_model.py does");
    samples_ = fields_.text(size, "expr_str");
  }
  if (input_.empty()) refuse("the model has no input");
}

std::optional<Extent> GraphValues::extent(Json const& size) const {
  auto const [kind, value] = fields_.tagged(size, "a size in its graph");
  if (kind == "as_int") return Extent{.fixed = fields_.as_integer(value, "a size in its graph")};
  if (kind != "as_expr") fields_.refuse(str("a size in its graph is of unknown kind ", kind));
  return extent_of(fields_.text(value, "expr_str"), samples_);
}

void GraphValues::read_tensor(std::string const& name, Json const& meta) {
  ExportedValue value{.name = name};
  auto const type = exported_type(fields_.integer(meta, "dtype"));
  if (!type) fields_.refuse(str("value ", name, " has a type that is not known here"));
  value.type = *type;
  for (auto const& size : fields_.array(meta, "sizes")) {
    auto const known = extent(size);
    if (!known || known->fixed < 0 || known->per_sample < 0)
      fields_.refuse(str("the shape of value ", name,
                         " depends on data, or otherwise than as a multiple on the number of "
                         "samples: ",
                         size.dump()));
    value.shape.push_back(*known);
  }
  if (fields_.integer(meta, "layout") != exported_strided)
    fields_.refuse(str("value ", name, " is not strided"));
  value.contiguous = is_contiguous(value, meta);
  ids_[name] = static_cast<ValueId>(values_.size());
  values_.push_back(std::move(value));
  made_.push_back(false);
}

/// An extent of 1 has any stride.
bool GraphValues::is_contiguous(ExportedValue const& value, Json const& meta) const {
  if (!meta.contains("strides")) return true;
  auto const& strides = fields_.array(meta, "strides");
  if (strides.size() != value.shape.size()) return true;
  std::optional<Extent> step = Extent{.fixed = 1};
  for (auto i = strides.size(); i-- > 0 && step;) {
    auto const& size = value.shape[i];
    if (size == Extent{.fixed = 1}) continue;
    if (extent(strides[i]) != step) return false;
    step = product(*step, size);
  }
  return true;
}

void GraphValues::read_integers(Json const& integers) {
  for (auto const& [name, value] : integers.items()) {
    auto const known = extent(value);
    if (!known)
      fields_.refuse(
          str("integer ", name, " is no multiple of the number of samples: ", value.dump()));
    integers_[name] = *known;
  }
}

ValueId GraphValues::find(std::string const& name, std::string const& user) const {
  auto const found = ids_.find(name);
  if (found == ids_.end())
    fields_.refuse(str(user, " uses value ", name, ", which is not described"));
  return found->second;
}

ValueId GraphValues::use(std::string const& name, std::string const& user) const {
  auto const id = find(name, user);
  if (!made_[static_cast<std::size_t>(id)])
    fields_.refuse(str(user, " uses value ", name, " before it is made"));
  return id;
}

void GraphValues::make(ValueId id) {
  auto const made = made_[static_cast<std::size_t>(id)];
  if (made) fields_.refuse(str("value ", value(id).name, " is made twice"));
  made_[static_cast<std::size_t>(id)] = true;
}

Extent GraphValues::integer(Json const& tagged, std::string const& what) const {
  auto const [kind, content] = fields_.tagged(tagged, what);
  if (kind == "as_int") return {.fixed = fields_.as_integer(content, what)};
  if (kind != "as_name" || !content.is_string()) fields_.refuse(str(what, " is not an integer"));
  auto const found = integers_.find(content.get<std::string>());
  if (found == integers_.end())
    fields_.refuse(str(what, " uses integer ", content.dump(), ", which is not described"));
  return found->second;
}

}  // namespace stratagem
