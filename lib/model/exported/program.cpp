#include "model/exported/program.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <nlohmann/json.hpp>

#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "model/exported/extent.hpp"

namespace stratagem {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t schema_major = 8;
constexpr int deepest_value = 40;  ///< code that walks JSON is recursive

/// torch.export numbers types in its own way.
std::optional<at::ScalarType> scalar_type(std::int64_t number) {
  switch (number) {
    case 1: return at::kByte;
    case 2: return at::kChar;
    case 3: return at::kShort;
    case 4: return at::kInt;
    case 5: return at::kLong;
    case 6: return at::kHalf;
    case 7: return at::kFloat;
    case 8: return at::kDouble;
    case 12: return at::kBool;
    case 13: return at::kBFloat16;
    default: return std::nullopt;
  }
}

std::optional<at::MemoryFormat> memory_format(std::int64_t number) {
  switch (number) {
    case 1: return at::MemoryFormat::Contiguous;
    case 2: return at::MemoryFormat::ChannelsLast;
    case 4: return at::MemoryFormat::Preserve;
    default: return std::nullopt;
  }
}

constexpr std::int64_t strided_layout = 7;

/// `torch.ops.aten.add_.Tensor` -> `aten::add_.Tensor`; `default` is no overload.
std::string operator_name(std::string const& target) {
  constexpr std::string_view prefix = "torch.ops.", plain = ".default";
  if (!target.starts_with(prefix)) return target;
  auto name = target.substr(prefix.size());
  if (auto const point = name.find('.'); point != std::string::npos) name.replace(point, 1, "::");
  if (name.ends_with(plain)) name.resize(name.size() - plain.size());
  return name;
}

/// The last entry of "L__self__,,Net;L__self__layer1,layer1,Sequential;...".
std::string module_of(std::string const& stack) {
  auto const modules = split(stack, ';');
  auto const parts = split(modules.back(), ',');
  return parts.size() < 2 ? "" : parts[1];
}

/// The line of the user's source: the innermost that is not in PyTorch's own modules.
std::string location_of(std::string const& stack) {
  std::string found;
  for (auto const& line : split(stack, '\n')) {
    auto const text = trim(line);
    if (!text.starts_with("File \"") || text.find("/torch/nn/") != std::string_view::npos) continue;
    auto const end = text.find('"', 6);
    auto const number = text.find("line ", end);
    if (end == std::string_view::npos || number == std::string_view::npos) continue;
    auto const digits = text.substr(number + 5, text.find(',', number) - number - 5);
    found = str(text.substr(6, end - 6), ":", digits);
  }
  return found;
}

class ProgramReader {
 public:
  explicit ProgramReader(ProgramArchive const& archive) : archive_(archive) {
    program_.path = archive.path().string();
  }

  ExportedProgram read() {
    auto const file = parse(graph_record());
    check_versions(file);
    auto const& module = object(file, "graph_module");
    auto const& graph = object(module, "graph");
    auto const& signature = object(module, "signature");
    find_samples(graph, signature);
    read_values(object(graph, "tensor_values"));
    read_integers(object(graph, "sym_int_values"));
    read_inputs(array(signature, "input_specs"));
    for (auto const& node : array(graph, "nodes")) read_node(node);
    read_outputs(array(signature, "output_specs"));
    read_range(file);
    find_records();
    return std::move(program_);
  }

 private:
  [[noreturn]] void refuse(std::string const& why) const { archive_.refuse(why); }

  // Members of JSON values.

  Json const& member(Json const& of, char const* key) const {
    if (!of.is_object() || !of.contains(key)) refuse(str("its graph lacks \"", key, "\""));
    return of.at(key);
  }
  Json const& object(Json const& of, char const* key) const {
    auto const& value = member(of, key);
    if (!value.is_object()) refuse(str("\"", key, "\" of its graph is not an object"));
    return value;
  }
  Json const& array(Json const& of, char const* key) const {
    auto const& value = member(of, key);
    if (!value.is_array()) refuse(str("\"", key, "\" of its graph is not a list"));
    return value;
  }
  std::string text(Json const& of, char const* key) const {
    auto const& value = member(of, key);
    if (!value.is_string()) refuse(str("\"", key, "\" of its graph is not a text"));
    return value.get<std::string>();
  }
  std::int64_t as_integer(Json const& value, std::string const& what) const {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > most))
      refuse(str(what, " is not an integer"));
    return value.get<std::int64_t>();
  }
  std::int64_t integer(Json const& of, char const* key) const {
    return as_integer(member(of, key), str("\"", key, "\" of its graph"));
  }
  /// The only member of a tagged value, as `{"as_int": 3}`.
  std::pair<std::string, Json const&> tagged(Json const& value, std::string const& what) const {
    if (!value.is_object() || value.size() != 1) refuse(str(what, " is not one tagged value"));
    return {value.begin().key(), value.begin().value()};
  }

  Json parse(std::string const& record) const {
    bool shallow = true;
    auto const watch = [&](int depth, Json::parse_event_t, Json const&) {
      shallow = shallow && depth <= deepest_value;
      return shallow;
    };
    auto content = Json::parse(archive_.text(record), watch, /*allow_exceptions=*/false);
    if (!shallow) refuse(str("its record ", record, " has values within values"));
    if (!content.is_object()) refuse(str("its record ", record, " is not a JSON object"));
    return content;
  }

  // The file.

  std::string graph_record() const {
    std::string found;
    for (auto const& record : archive_.records()) {
      if (!record.starts_with("models/") || !record.ends_with(".json")) continue;
      if (!found.empty()) refuse("it holds several graphs");
      found = record;
    }
    if (found.empty()) refuse("it holds no graph of torch.export (models/*.json)");
    return found;
  }
  std::string name_of_graph() const {
    auto const record = graph_record();
    return record.substr(7, record.size() - 12);
  }

  void check_versions(Json const& file) {
    auto const major = integer(object(file, "schema_version"), "major");
    if (file.contains("torch_version") && file["torch_version"].is_string())
      program_.torch_version = file["torch_version"];
    if (major != schema_major)
      archive_.refuse(str("its schema is version ", major, " (torch ", program_.torch_version,
                          "), known is ", schema_major),
                      "export it with torch 2.8 to 2.11");
  }

  /// The symbol of the first extent of the input is the number of samples.
  void find_samples(Json const& graph, Json const& signature) {
    auto const& values = object(graph, "tensor_values");
    for (auto const& spec : array(signature, "input_specs")) {
      auto const [kind, content] = tagged(spec, "an input of its graph");
      if (kind != "user_input") continue;
      auto const [type, argument] = tagged(member(content, "arg"), "an input of its graph");
      if (type != "as_tensor")
        archive_.refuse("an input of the model is not a tensor", "wrap the model in one that takes one tensor");
      if (!input_.empty())
        archive_.refuse("the model has several inputs", "wrap the model in one that takes one tensor");
      input_ = text(argument, "name");
      auto const& sizes = array(member(values, input_.c_str()), "sizes");
      if (sizes.empty()) refuse("the model's input has no dimension for samples");
      auto const [kind_of_size, size] = tagged(sizes[0], "a size of the model's input");
      if (kind_of_size != "as_expr")
        archive_.refuse(
            str("it was exported for exactly ", size.dump(), " samples"),
            "export it with a dynamic first dimension, as analysis/export_model.py does");
      samples_ = text(size, "expr_str");
    }
    if (input_.empty()) refuse("the model has no input");
  }

  std::optional<Extent> extent(Json const& size) const {
    auto const [kind, value] = tagged(size, "a size in its graph");
    if (kind == "as_int") return Extent{.fixed = as_integer(value, "a size in its graph")};
    if (kind != "as_expr") refuse(str("a size in its graph is of unknown kind ", kind));
    return extent_of(text(value, "expr_str"), samples_);
  }

  void read_values(Json const& metas) {
    for (auto const& [name, meta] : metas.items()) {
      ExportedValue value{.name = name};
      auto const type = scalar_type(integer(meta, "dtype"));
      if (!type) refuse(str("value ", name, " has a type that is not known here"));
      value.type = *type;
      for (auto const& size : array(meta, "sizes")) {
        auto const known = extent(size);
        if (!known)
          refuse(str("the shape of value ", name,
                     " depends on data, or otherwise than as a multiple on the number of samples: ",
                     size.dump()));
        value.shape.push_back(*known);
      }
      if (integer(meta, "layout") != strided_layout) refuse(str("value ", name, " is not strided"));
      add(std::move(value));
    }
  }

  void read_integers(Json const& integers) {
    for (auto const& [name, value] : integers.items()) {
      auto const known = extent(value);
      if (!known)
        refuse(str("integer ", name, " is no multiple of the number of samples: ", value.dump()));
      integers_.emplace(name, *known);
    }
  }

  ValueId add(ExportedValue value) {
    auto const id = static_cast<ValueId>(program_.values.size());
    if (!ids_.emplace(value.name, id).second)
      refuse(str("value ", value.name, " is described twice"));
    program_.values.push_back(std::move(value));
    return id;
  }
  ValueId id_of(std::string const& name, std::string const& user) const {
    auto const found = ids_.find(name);
    if (found == ids_.end()) refuse(str(user, " uses value ", name, ", which is not described"));
    return found->second;
  }

  void read_inputs(Json const& specs) {
    for (auto const& spec : specs) {
      auto const [kind, content] = tagged(spec, "an input of its graph");
      if (kind == "user_input") {
        program_.input = id_of(input_, "the graph");
        define(program_.input, "the graph");
        continue;
      }
      using Kind = ExportedState::Kind;
      bool const parameter = kind == "parameter", buffer = kind == "buffer";
      if (!parameter && !buffer && kind != "tensor_constant")
        refuse(str("its graph has an input of kind ", kind, ", which is not known here"));
      ExportedState state{.kind = parameter ? Kind::parameter : buffer ? Kind::buffer : Kind::constant};
      state.name = text(content, parameter ? "parameter_name" : buffer ? "buffer_name" : "tensor_constant_name");
      if (buffer && !member(content, "persistent").is_boolean())
        refuse(str("buffer ", state.name, " does not say whether it is persistent"));
      if (buffer && !content["persistent"].get<bool>()) state.kind = Kind::constant;
      state.value = id_of(text(member(content, "arg"), "name"), state.name);
      define(state.value, state.name);
      for (auto const& size : program_.value(state.value).shape)
        if (size.per_sample != 0) refuse(str("the shape of ", state.name, " is not fixed"));
      program_.state.push_back(std::move(state));
    }
    std::ranges::stable_partition(program_.state, [](auto const& state) {
      return state.kind != ExportedState::Kind::constant;
    });
  }

  void define(ValueId value, std::string const& by) {
    if (!defined_.emplace(value, by).second)
      refuse(str("value ", program_.value(value).name, " is made twice"));
  }
  ValueId used(std::string const& name, std::string const& user) const {
    auto const id = id_of(name, user);
    if (!defined_.contains(id)) refuse(str(user, " uses value ", name, " before it is made"));
    return id;
  }

  // Nodes.

  void read_node(Json const& json) {
    ExportedNode node{.target = operator_name(text(json, "target"))};
    auto const& metadata = object(json, "metadata");
    if (metadata.contains("nn_module_stack")) node.module = module_of(text(metadata, "nn_module_stack"));
    if (metadata.contains("stack_trace")) node.location = location_of(text(metadata, "stack_trace"));
    auto const& outputs = array(json, "outputs");
    if (json.contains("name") && json["name"].is_string()) node.name = json["name"];
    auto const who = describe(node);
    bool const is_integer = std::ranges::any_of(
        outputs, [&](Json const& output) { return tagged(output, who).first == "as_sym_int"; });
    if (is_integer) return;  // known from its expression
    for (auto const& argument : array(json, "inputs")) node.arguments.push_back(read_argument(argument, who));
    for (auto const& output : outputs) {
      auto const [kind, value] = tagged(output, who);
      if (kind == "as_none") continue;
      node.returns_list = kind == "as_tensors";
      if (kind != "as_tensor" && kind != "as_tensors")
        refuse(str(who, " returns ", kind, ", which is not known here"));
      if (node.returns_list && outputs.size() != 1)
        refuse(str(who, " returns several lists"));
      for (auto const& tensor : node.returns_list ? value : Json::array({value})) {
        auto const id = id_of(text(tensor, "name"), who);
        define(id, who);
        node.outputs.push_back(id);
      }
    }
    if (node.outputs.empty()) refuse(str(who, " returns nothing"));
    if (node.name.empty()) node.name = program_.value(node.outputs.front()).name;
    program_.nodes.push_back(std::move(node));
  }

  static std::string describe(ExportedNode const& node) {
    return str("operator ", node.target, node.name.empty() ? "" : " " + node.name,
               node.module.empty() ? "" : " of " + node.module,
               node.location.empty() ? "" : " (" + node.location + ")");
  }

  ExportedArgument read_argument(Json const& json, std::string const& who) const {
    auto name = text(json, "name");
    auto const what = str("argument ", name, " of ", who);
    auto const [kind, value] = tagged(member(json, "arg"), what);
    return {std::move(name), argument_value(kind, value, what)};
  }

  decltype(ExportedArgument::value) argument_value(std::string const& kind, Json const& value,
                                                   std::string const& what) const {
    using A = ExportedArgument;
    if (kind == "as_none") return c10::IValue();
    if (kind == "as_bool" && value.is_boolean()) return c10::IValue(value.get<bool>());
    if (kind == "as_int") return A::Integers{{{.fixed = as_integer(value, what)}}, false};
    if (kind == "as_float") return c10::IValue(number(value, what));
    if (kind == "as_string" && value.is_string()) return c10::IValue(value.get<std::string>());
    if (kind == "as_tensor") return A::Tensor{used(text(value, "name"), what)};
    if (kind == "as_optional_tensor") return optional_tensor(value, what);
    if (kind == "as_sym_int") return A::Integers{{sym_int(value, what)}, false};
    if (kind == "as_device") return A::Device{};
    if (kind == "as_scalar_type") return type_value(as_integer(value, what), what);
    if (kind == "as_memory_format") {
      if (auto const format = memory_format(as_integer(value, what)))
        return c10::IValue(static_cast<std::int64_t>(*format));
      refuse(str(what, " is a memory format that is not known here"));
    }
    if (kind == "as_layout") {
      if (as_integer(value, what) != strided_layout) refuse(str(what, " is not the strided layout"));
      return c10::IValue(static_cast<std::int64_t>(at::kStrided));
    }
    if (value.is_array()) return list_value(kind, value, what);
    refuse(str(what, " is of kind ", kind, ", which is not known here"));
  }

  decltype(ExportedArgument::value) list_value(std::string const& kind, Json const& list,
                                               std::string const& what) const {
    if (kind == "as_ints" || kind == "as_sym_ints") {
      ExportedArgument::Integers integers{{}, true};
      for (auto const& item : list)
        integers.extents.push_back(kind == "as_ints" ? Extent{.fixed = as_integer(item, what)}
                                                     : sym_int(item, what));
      return integers;
    }
    if (kind == "as_tensors" || kind == "as_optional_tensors") {
      ExportedArgument::Tensors tensors;
      for (auto const& item : list) {
        if (kind == "as_tensors") {
          tensors.values.push_back(used(text(item, "name"), what));
          continue;
        }
        auto const [tag, tensor] = tagged(item, what);
        tensors.values.push_back(tag == "as_none" ? -1 : used(text(tensor, "name"), what));
      }
      return tensors;
    }
    if (kind == "as_floats") {
      std::vector<double> numbers;
      for (auto const& item : list) numbers.push_back(number(item, what));
      return c10::IValue(std::move(numbers));
    }
    if (kind == "as_bools") {
      c10::List<bool> flags;
      for (auto const& item : list) {
        if (!item.is_boolean()) refuse(str(what, " is not a list of booleans"));
        flags.push_back(item.get<bool>());
      }
      return c10::IValue(std::move(flags));
    }
    refuse(str(what, " is of kind ", kind, ", which is not known here"));
  }

  decltype(ExportedArgument::value) optional_tensor(Json const& value, std::string const& what) const {
    auto const [kind, tensor] = tagged(value, what);
    if (kind == "as_none") return c10::IValue();
    return ExportedArgument::Tensor{used(text(tensor, "name"), what)};
  }

  /// What was exported as fp32 is computed in the type of the pass.
  decltype(ExportedArgument::value) type_value(std::int64_t number, std::string const& what) const {
    auto const type = scalar_type(number);
    if (!type) refuse(str(what, " is a type that is not known here"));
    if (*type == at::kFloat) return ExportedArgument::FloatingType{};
    return c10::IValue(static_cast<std::int64_t>(*type));
  }

  Extent sym_int(Json const& value, std::string const& what) const {
    auto const [kind, content] = tagged(value, what);
    if (kind == "as_int") return {.fixed = as_integer(content, what)};
    if (kind != "as_name" || !content.is_string()) refuse(str(what, " is not an integer"));
    auto const found = integers_.find(content.get<std::string>());
    if (found == integers_.end())
      refuse(str(what, " uses integer ", content.dump(), ", which is not described"));
    return found->second;
  }

  /// JSON has no infinity.
  double number(Json const& value, std::string const& what) const {
    constexpr auto infinity = std::numeric_limits<double>::infinity();
    if (value == "Infinity") return infinity;
    if (value == "-Infinity") return -infinity;
    if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) refuse(str(what, " is not a number"));
    return value.get<double>();
  }

  void read_outputs(Json const& specs) {
    for (auto const& spec : specs) {
      auto const [kind, content] = tagged(spec, "an output of its graph");
      if (kind != "user_output")
        archive_.refuse(str("its graph has an output of kind ", kind),
                        "save what torch.export.export returns, without run_decompositions()");
      auto const [type, value] = tagged(member(content, "arg"), "an output of its graph");
      if (program_.output >= 0) {
        ++program_.ignored_outputs;
        continue;
      }
      if (type != "as_tensor") refuse("the model's first output is not a tensor");
      program_.output = used(text(value, "name"), "the output");
    }
    if (program_.output < 0) refuse("the model has no output");
    auto const& logits = program_.value(program_.output);
    if (logits.shape.size() != 2 || !logits.shape[0].is_samples() || logits.shape[1].per_sample != 0)
      refuse("the model's first output is not of shape [samples, classes]");
  }

  /// Of the number of samples, where the user gave one.
  void read_range(Json const& file) {
    if (!file.contains("range_constraints") || !file["range_constraints"].is_object()) return;
    for (auto const& [symbol, range] : file["range_constraints"].items()) {
      if (samples_.find("'" + symbol + "'") == std::string::npos) continue;
      if (range.contains("min_val") && range["min_val"].is_number_integer())
        program_.least_samples = integer(range, "min_val");
      if (range.contains("max_val") && range["max_val"].is_number_integer())
        program_.most_samples = integer(range, "max_val");
    }
  }

  /// Where the bytes of parameters, buffers and constants are. Their shapes must be the graph's.
  void find_records() {
    auto const graph = name_of_graph();
    read_records("data/weights/", graph + "_weights_config.json", false);
    read_records("data/constants/", graph + "_constants_config.json", true);
    for (auto const& state : program_.state)
      if (state.record.empty()) refuse(str("it has no values for ", state.name));
  }

  void read_records(std::string const& folder, std::string const& table, bool constants) {
    auto const config = parse(folder + table);
    auto const& entries = object(config, "config");
    for (auto& state : program_.state) {
      if (!entries.contains(state.name)) continue;
      bool const here = (state.kind == ExportedState::Kind::constant) == constants;
      if (!here && !state.record.empty()) continue;
      auto const& entry = entries.at(state.name);
      if (member(entry, "use_pickle") != false)
        refuse(str("the values of ", state.name, " are a pickle, which is not opened"));
      check_record(state, object(entry, "tensor_meta"));
      state.record = folder + text(entry, "path_name");
    }
  }

  void check_record(ExportedState const& state, Json const& meta) const {
    auto const& value = program_.value(state.value);
    bool alike = scalar_type(integer(meta, "dtype")) == value.type;
    auto const& sizes = array(meta, "sizes");
    alike = alike && sizes.size() == value.shape.size();
    std::int64_t step = 1;
    auto const& strides = array(meta, "strides");
    if (strides.size() != sizes.size()) refuse(str(state.name, " has strides for other dimensions"));
    for (std::size_t i = sizes.size(); alike && i-- > 0;) {
      alike = extent(sizes[i]) == value.shape[i];
      auto const stride = extent(strides[i]);
      if (value.shape[i].fixed > 1 && (!stride || stride->fixed != step))
        refuse(str("the values of ", state.name, " are not contiguous"));
      step *= value.shape[i].fixed;
    }
    if (!alike) refuse(str("the values of ", state.name, " have another shape or type than in the graph"));
    if (extent(member(meta, "storage_offset")) != Extent{})
      refuse(str("the values of ", state.name, " do not begin at the begin of their record"));
  }

  static constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();

  ProgramArchive const& archive_;
  ExportedProgram program_;
  std::string input_;    ///< name of the value
  std::string samples_;  ///< expression of the number of samples
  std::map<std::string, ValueId> ids_;
  std::map<std::string, Extent> integers_;
  std::map<ValueId, std::string> defined_;  ///< by which node
};

void add(Hash& hash, Extent const& extent) {
  hash.add(static_cast<std::uint64_t>(extent.fixed)).add(static_cast<std::uint64_t>(extent.per_sample));
}

/// Values by the order in which they are made, so that names do not count.
class Digest {
 public:
  explicit Digest(ExportedProgram const& program) : program_(program) {
    number(program.input);
    for (auto const& state : program.state) {
      number(state.value);
      hash_.add(state.name).add(static_cast<std::uint64_t>(state.kind));
      shape(state.value);
    }
    for (auto const& node : program.nodes) add_node(node);
    hash_.add(static_cast<std::uint64_t>(numbers_.at(program.output)));
  }

  std::string hex() const { return hash_.hex(); }

 private:
  void number(ValueId value) { numbers_.emplace(value, numbers_.size()); }
  void shape(ValueId value) {
    auto const& of = program_.value(value);
    hash_.add(static_cast<std::uint64_t>(of.type)).add(static_cast<std::uint64_t>(of.shape.size()));
    for (auto const& extent : of.shape) add(hash_, extent);
  }
  void use(ValueId value) { hash_.add(value < 0 ? ~std::uint64_t{0} : numbers_.at(value)); }

  void add_node(ExportedNode const& node) {
    hash_.add(node.target).add(static_cast<std::uint64_t>(node.arguments.size()));
    for (auto const& [name, value] : node.arguments) {
      hash_.add(name).add(static_cast<std::uint64_t>(value.index()));
      if (auto const* constant = std::get_if<c10::IValue>(&value)) {
        std::ostringstream text;
        text << *constant;
        hash_.add(text.str());
      } else if (auto const* tensor = std::get_if<ExportedArgument::Tensor>(&value)) {
        use(tensor->value);
      } else if (auto const* tensors = std::get_if<ExportedArgument::Tensors>(&value)) {
        for (auto id : tensors->values) use(id);
      } else if (auto const* integers = std::get_if<ExportedArgument::Integers>(&value)) {
        for (auto const& extent : integers->extents) add(hash_, extent);
      }
    }
    for (auto output : node.outputs) {
      number(output);
      shape(output);
    }
  }

  ExportedProgram const& program_;
  Hash hash_;
  std::map<ValueId, std::uint64_t> numbers_;
};

}  // namespace

ExportedProgram read_program(ProgramArchive const& archive) { return ProgramReader(archive).read(); }

std::string digest_of(ExportedProgram const& program) { return Digest(program).hex(); }

}  // namespace stratagem
