#include "model/exported/file/argument_reader.hpp"

#include <c10/core/Layout.h>

#include "base/text.hpp"
#include "model/exported/file/export_types.hpp"

namespace stratagem {

ExportedArgument ArgumentReader::read(Json const& argument, std::string const& node) const {
  auto name = fields_.text(argument, "name");
  auto const what = str("argument ", name, " of ", node);
  auto const [kind, value] = fields_.tagged(fields_.member(argument, "arg"), what);
  return {std::move(name), value_of(kind, value, what)};
}

ArgumentReader::Value ArgumentReader::value_of(std::string const& kind, Json const& value,
                                               std::string const& what) const {
  using A = ExportedArgument;
  if (kind == "as_none") return c10::IValue();
  if (kind == "as_bool" && value.is_boolean()) return c10::IValue(value.get<bool>());
  if (kind == "as_int") return A::Integers{{{.fixed = fields_.as_integer(value, what)}}, false};
  if (kind == "as_sym_int") return A::Integers{{values_.integer(value, what)}, false};
  if (kind == "as_float") return c10::IValue(fields_.as_number(value, what));
  if (kind == "as_string" && value.is_string()) return c10::IValue(value.get<std::string>());
  if (kind == "as_tensor") return A::Tensor{values_.use(fields_.text(value, "name"), what)};
  if (kind == "as_optional_tensor") return optional_tensor(value, what);
  if (kind == "as_device") return A::Device{};
  if (kind == "as_scalar_type") return type_of(value, what);
  if (kind == "as_memory_format") {
    auto const format = exported_memory_format(fields_.as_integer(value, what));
    if (!format) fields_.refuse(str(what, " is a memory format that is not known here"));
    return c10::IValue(static_cast<std::int64_t>(*format));
  }
  if (kind == "as_layout") {
    if (fields_.as_integer(value, what) != exported_strided)
      fields_.refuse(str(what, " is not the strided layout"));
    return c10::IValue(static_cast<std::int64_t>(at::kStrided));
  }
  if (value.is_array()) return list_of(kind, value, what);
  fields_.refuse(str(what, " is of kind ", kind, ", which is not known here"));
}

ArgumentReader::Value ArgumentReader::list_of(std::string const& kind, Json const& list,
                                              std::string const& what) const {
  if (kind == "as_ints" || kind == "as_sym_ints") {
    ExportedArgument::Integers integers{{}, true};
    for (auto const& item : list)
      integers.extents.push_back(kind == "as_ints" ? Extent{.fixed = fields_.as_integer(item, what)}
                                                   : values_.integer(item, what));
    return integers;
  }
  if (kind == "as_tensors" || kind == "as_optional_tensors") return tensors_of(kind, list, what);
  if (kind == "as_floats") {
    std::vector<double> numbers;
    for (auto const& item : list) numbers.push_back(fields_.as_number(item, what));
    return c10::IValue(std::move(numbers));
  }
  if (kind == "as_bools") {
    c10::List<bool> flags;
    for (auto const& item : list) {
      if (!item.is_boolean()) fields_.refuse(str(what, " is not a list of booleans"));
      flags.push_back(item.get<bool>());
    }
    return c10::IValue(std::move(flags));
  }
  fields_.refuse(str(what, " is of kind ", kind, ", which is not known here"));
}

ArgumentReader::Value ArgumentReader::tensors_of(std::string const& kind, Json const& list,
                                                 std::string const& what) const {
  ExportedArgument::Tensors tensors;
  for (auto const& item : list) {
    if (kind == "as_tensors") {
      tensors.values.push_back(values_.use(fields_.text(item, "name"), what));
      continue;
    }
    auto const [tag, tensor] = fields_.tagged(item, what);
    tensors.values.push_back(tag == "as_none" ? -1
                                              : values_.use(fields_.text(tensor, "name"), what));
  }
  return tensors;
}

ArgumentReader::Value ArgumentReader::optional_tensor(Json const& value,
                                                      std::string const& what) const {
  auto const [kind, tensor] = fields_.tagged(value, what);
  if (kind == "as_none") return c10::IValue();
  return ExportedArgument::Tensor{values_.use(fields_.text(tensor, "name"), what)};
}

/// What was exported in the type of the parameters is computed in that of the pass.
ArgumentReader::Value ArgumentReader::type_of(Json const& value, std::string const& what) const {
  auto const type = exported_type(fields_.as_integer(value, what));
  if (!type) fields_.refuse(str(what, " is a type that is not known here"));
  if (*type == values_.floating_type()) return ExportedArgument::FloatingType{};
  return c10::IValue(static_cast<std::int64_t>(*type));
}

}  // namespace stratagem
