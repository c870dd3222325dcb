#include "model/exported/program.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/argument_reader.hpp"
#include "model/exported/fields.hpp"
#include "model/exported/graph_values.hpp"
#include "model/exported/state_records.hpp"

namespace stratagem {
namespace {

using Json = Fields::Json;

constexpr std::int64_t schema_major = 8;
constexpr std::string_view graphs = "models/", json = ".json";

/// `torch.ops.aten.add_.Tensor` -> `aten::add_.Tensor`; `default` is no overload.
std::string operator_name(std::string const& target) {
  constexpr std::string_view prefix = "torch.ops.", plain = ".default";
  if (!target.starts_with(prefix)) return target;
  auto name = target.substr(prefix.size());
  if (auto const point = name.find('.'); point != std::string::npos) name.replace(point, 1, "::");
  if (name.ends_with(plain)) name.resize(name.size() - plain.size());
  return name;
}

/// The path in the last entry of "L__self__,,Net;L__self__layer1,layer1,Sequential;...".
std::string module_of(std::string const& stack) {
  auto const modules = split(stack, ';');
  auto const parts = split(modules.back(), ',');
  return parts.size() < 2 ? "" : parts[1];
}

/// `net.py:12`, of the user's source: the innermost line that is not in PyTorch's own modules.
std::string location_of(std::string const& stack) {
  constexpr std::string_view file = "File \"", line_number = "line ";
  std::string found;
  for (auto const& line : split(stack, '\n')) {
    auto const text = trim(line);
    if (!text.starts_with(file) || text.find("/torch/nn/") != std::string_view::npos) continue;
    auto const end = text.find('"', file.size());
    auto const number = text.find(line_number, end);
    if (end == std::string_view::npos || number == std::string_view::npos) continue;
    auto const digits = number + line_number.size();
    found = str(text.substr(file.size(), end - file.size()), ":",
                text.substr(digits, text.find(',', number) - digits));
  }
  return found;
}

std::string describe(ExportedNode const& node) {
  return str("operator ", node.target, node.name.empty() ? "" : " " + node.name,
             node.module.empty() ? "" : " of " + node.module,
             node.location.empty() ? "" : " (" + node.location + ")");
}

/// Of the only graph, without folder and ending.
std::string graph_name(Fields const& fields) {
  std::string found;
  for (auto const& record : fields.archive().records()) {
    if (!record.starts_with(graphs) || !record.ends_with(json)) continue;
    if (!found.empty()) fields.refuse("it holds several graphs");
    found = record.substr(graphs.size(), record.size() - graphs.size() - json.size());
  }
  if (found.empty()) fields.refuse("it holds no graph of torch.export (models/*.json)");
  return found;
}

class ProgramReader {
 public:
  ProgramReader(Fields const& fields, Json const& file)
      : fields_(fields),
        graph_(fields.object(fields.object(file, "graph_module"), "graph")),
        signature_(fields.object(fields.object(file, "graph_module"), "signature")),
        values_(fields, graph_, signature_),
        arguments_(fields, values_) {}

  ExportedProgram read(std::string const& name) {
    program_.path = fields_.archive().path().string();
    for (auto const& spec : fields_.array(signature_, "input_specs")) read_input(spec);
    for (auto const& node : fields_.array(graph_, "nodes")) read_node(node);
    for (auto const& spec : fields_.array(signature_, "output_specs")) read_output(spec);
    check_logits();
    find_state_records(fields_, values_, name, program_.state);
    join_tied();
    std::stable_partition(
        program_.state.begin(), program_.state.end(),
        [](ExportedState const& state) { return state.kind != ExportedState::Kind::constant; });
    program_.values = values_.take();
    return std::move(program_);
  }

 private:
  void read_input(Json const& spec) {
    using Kind = ExportedState::Kind;
    auto const [kind, content] = fields_.tagged(spec, "an input of its graph");
    if (kind == "user_input") {
      program_.input = values_.find(values_.input(), "the graph");
      values_.make(program_.input);
      return;
    }
    bool const parameter = kind == "parameter", buffer = kind == "buffer";
    if (!parameter && !buffer && kind != "tensor_constant")
      fields_.refuse(str("its graph has an input of kind ", kind, ", which is not known here"));
    ExportedState state{.kind = parameter ? Kind::parameter
                                : buffer  ? Kind::buffer
                                          : Kind::constant};
    state.name = fields_.text(content, parameter ? "parameter_name"
                                       : buffer  ? "buffer_name"
                                                 : "tensor_constant_name");
    if (buffer && fields_.member(content, "persistent") != true) state.kind = Kind::constant;
    state.value = values_.find(fields_.text(fields_.member(content, "arg"), "name"), state.name);
    values_.make(state.value);
    for (auto const& extent : values_.value(state.value).shape)
      if (extent.per_sample != 0) fields_.refuse(str("the shape of ", state.name, " is not fixed"));
    program_.state.push_back(std::move(state));
  }

  void read_node(Json const& node_json) {
    ExportedNode node{.target = operator_name(fields_.text(node_json, "target"))};
    auto const& metadata = fields_.object(node_json, "metadata");
    if (metadata.contains("nn_module_stack"))
      node.module = module_of(fields_.text(metadata, "nn_module_stack"));
    if (metadata.contains("stack_trace"))
      node.location = location_of(fields_.text(metadata, "stack_trace"));
    if (node_json.contains("name") && node_json["name"].is_string()) node.name = node_json["name"];
    auto const who = describe(node);
    auto const& outputs = fields_.array(node_json, "outputs");
    for (auto const& output : outputs)
      if (fields_.tagged(output, who).first == "as_sym_int") return;  // known from its expression
    for (auto const& argument : fields_.array(node_json, "inputs"))
      node.arguments.push_back(arguments_.read(argument, who));
    for (auto const& output : outputs) read_result(output, outputs.size(), who, node);
    if (node.outputs.empty()) fields_.refuse(str(who, " returns nothing"));
    if (node.name.empty()) node.name = values_.value(node.outputs.front()).name;
    program_.nodes.push_back(std::move(node));
  }

  void read_result(Json const& output, std::size_t outputs, std::string const& who,
                   ExportedNode& node) {
    auto const [kind, value] = fields_.tagged(output, who);
    if (kind == "as_none") return;
    node.returns_list = kind == "as_tensors" && value.is_array();
    if (kind != "as_tensor" && !node.returns_list)
      fields_.refuse(str(who, " returns ", kind, ", which is not known here"));
    if (node.returns_list && outputs != 1) fields_.refuse(str(who, " returns several lists"));
    for (auto const& tensor : node.returns_list ? value : Json::array({value})) {
      node.outputs.push_back(values_.find(fields_.text(tensor, "name"), who));
      values_.make(node.outputs.back());
    }
  }

  void read_output(Json const& spec) {
    auto const [kind, content] = fields_.tagged(spec, "an output of its graph");
    if (kind != "user_output")
      fields_.archive().refuse(str("its graph has an output of kind ", kind),
                               "save what torch.export.export returns, without "
                               "run_decompositions()");
    if (program_.output >= 0) return;  // of an auxiliary head
    auto const [type, value] =
        fields_.tagged(fields_.member(content, "arg"), "an output of its graph");
    if (type != "as_tensor") fields_.refuse("the model's first output is not a tensor");
    program_.output = values_.use(fields_.text(value, "name"), "the output");
  }

  /// Parameters that share their bytes are one, of several names.
  void join_tied() {
    std::map<std::string, ExportedState const*> by_record;
    std::map<ValueId, ValueId> first;
    std::vector<ExportedState> kept;
    for (auto const& state : program_.state) {
      auto const [found, is_first] = by_record.emplace(state.record, &state);
      if (is_first || state.kind != ExportedState::Kind::parameter) {
        kept.push_back(state);
        continue;
      }
      first[state.value] = found->second->value;
      program_.tied[state.name] = found->second->name;
    }
    program_.state = std::move(kept);
    auto const replace = [&](ValueId& value) {
      if (auto const found = first.find(value); found != first.end()) value = found->second;
    };
    for (auto& node : program_.nodes)
      for (auto& argument : node.arguments) {
        if (auto* tensor = std::get_if<ExportedArgument::Tensor>(&argument.value))
          replace(tensor->value);
        if (auto* tensors = std::get_if<ExportedArgument::Tensors>(&argument.value))
          for (auto& value : tensors->values) replace(value);
      }
  }

  void check_logits() const {
    if (program_.output < 0) fields_.refuse("the model has no output");
    auto const& shape = values_.value(program_.output).shape;
    if (shape.size() != 2 || !shape[0].is_samples() || shape[1].per_sample != 0)
      fields_.refuse("the model's first output is not of shape [samples, classes]");
  }

  Fields fields_;
  Json const& graph_;
  Json const& signature_;
  GraphValues values_;
  ArgumentReader arguments_;
  ExportedProgram program_;
};

}  // namespace

std::vector<std::int64_t> ExportedValue::fixed_shape() const {
  std::vector<std::int64_t> sizes;
  for (auto const& extent : shape) sizes.push_back(extent.fixed);
  return sizes;
}

std::string_view ExportedNode::base_name() const {
  std::string_view name = target;
  if (auto const end = name.find("::"); end != std::string_view::npos) name.remove_prefix(end + 2);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

void refuse(ExportedProgram const& program, ExportedNode const& node, std::string const& why,
            std::string const& cure) {
  throw Error(ExitCode::bad_data,
              str("model file ", program.path, ": operator ", node.target, " ", node.name,
                  node.module.empty() ? "" : str(" of module ", node.module),
                  node.location.empty() ? "" : str(" (", node.location, ")"), " cannot be used"),
              why, cure);
}

c10::IValue ExportedArgument::Integers::value(std::int64_t samples) const {
  if (!is_list) return extents.front().of(samples);
  c10::List<std::int64_t> list;
  for (auto const& extent : extents) list.push_back(extent.of(samples));
  return list;
}

ExportedProgram read_program(ProgramArchive const& archive) {
  Fields const fields(archive);
  auto const name = graph_name(fields);
  auto const file = fields.parse(str(graphs, name, json));
  std::string torch_version;
  if (file.contains("torch_version") && file["torch_version"].is_string())
    torch_version = file["torch_version"];
  if (auto const major = fields.integer(fields.object(file, "schema_version"), "major");
      major != schema_major)
    archive.refuse(str("its schema is version ", major, " (torch ", torch_version, "), known is ",
                       schema_major),
                   "export it with torch 2.8 to 2.11");
  return ProgramReader(fields, file).read(name);
}

}  // namespace stratagem
