#include "model/exported/program.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/file/argument_reader.hpp"
#include "model/exported/file/fields.hpp"
#include "model/exported/file/graph_values.hpp"
#include "model/exported/file/lifted_parameters.hpp"
#include "model/exported/file/state_records.hpp"

namespace stratagem {
namespace {

using Json = Fields::Json;

constexpr std::int64_t schema_major = 8;
constexpr std::string_view graphs = "models/", json = ".json", higher_order = "higher_order::";
constexpr int deepest = 20;  ///< regions within regions

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
    program_.type = values_.floating_type();
    for (auto const& spec : fields_.array(signature_, "input_specs")) read_input(spec);
    for (auto const& node : fields_.array(graph_, "nodes")) read_node(node, false);
    for (auto const& spec : fields_.array(signature_, "output_specs")) read_output(spec);
    check_logits();
    find_state_records(fields_, values_, name, program_.state);
    program_.values = values_.take();
    join_tied();
    std::stable_partition(
        program_.state.begin(), program_.state.end(),
        [](ExportedState const& state) { return state.kind != ExportedState::Kind::constant; });
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
    state.literal = kind == "tensor_constant";
    auto const value = fields_.text(fields_.member(content, "arg"), "name");
    state.value = values_.find(value, state.name);
    if (at::isComplexType(values_.value(state.value).type))
      fields_.archive().refuse(str(state.name, " is complex"), "keep its real and imaginary parts");
    if (parameter) {
      auto const& meta = fields_.object(fields_.object(graph_, "tensor_values"), value.c_str());
      state.frozen = meta.contains("requires_grad") && meta["requires_grad"] == false;
    }
    values_.make(state.value);
    for (auto const& extent : values_.value(state.value).shape)
      if (extent.per_sample != 0) fields_.refuse(str("the shape of ", state.name, " is not fixed"));
    program_.state.push_back(std::move(state));
  }

  void read_node(Json const& node_json, bool without_gradient) {
    ExportedNode node{.target = operator_name(fields_.text(node_json, "target")),
                      .without_gradient = without_gradient};
    auto const& metadata = fields_.object(node_json, "metadata");
    if (metadata.contains("nn_module_stack"))
      node.module = module_of(fields_.text(metadata, "nn_module_stack"));
    if (metadata.contains("stack_trace"))
      node.location = location_of(fields_.text(metadata, "stack_trace"));
    if (node_json.contains("name") && node_json["name"].is_string()) node.name = node_json["name"];
    auto const who = describe(node);
    auto const& outputs = fields_.array(node_json, "outputs");
    if (node.target.starts_with(higher_order)) return read_region(node_json, std::move(node));
    if (is_known_before(node, outputs, who)) return;
    for (auto const& argument : fields_.array(node_json, "inputs"))
      node.arguments.push_back(arguments_.read(argument, who));
    for (auto const& output : outputs) read_result(output, outputs.size(), who, node);
    if (node.outputs.empty()) refuse(program_, node, "it returns nothing");
    if (node.name.empty()) node.name = values_.value(node.outputs.front()).name;
    program_.nodes.push_back(std::move(node));
  }

  /// Computes with sizes alone, which their expressions tell, or asserts what the graph tells.
  bool is_known_before(ExportedNode const& node, Json const& outputs,
                       std::string const& who) const {
    auto const name = node.base_name();
    if (outputs.empty())
      return name.starts_with("_assert") || name.starts_with("sym_constrain_range");
    return std::ranges::any_of(outputs, [&](Json const& output) {
      auto const kind = fields_.tagged(output, who).first;
      return kind == "as_sym_int" || kind == "as_sym_bool";
    });
  }

  /// A graph within the graph, which runs once: `wrap_with_set_grad_enabled(enabled, graph, its
  /// inputs...)`, or `wrap_with_autocast(device, type, enabled, cache, graph, its inputs...)`.
  void read_region(Json const& node_json, ExportedNode node) {
    auto const& inputs = fields_.array(node_json, "inputs");
    auto const content = [&](std::size_t index) {
      if (index >= inputs.size()) refuse(program_, node, "it lacks arguments");
      return fields_.tagged(fields_.member(inputs[index], "arg"), describe(node));
    };
    auto const name = node.target.substr(higher_order.size());
    bool const gradients = name == "wrap_with_set_grad_enabled",
               casts = name == "wrap_with_autocast";
    if (!gradients && !casts)
      refuse(program_, node, "it is control flow, which is not known here",
             "leave control flow out of forward(), or write it with torch.where");
    std::size_t const flag = gradients ? 0 : 2, graph = gradients ? 1 : 4;
    bool const enabled = content(flag).second == true;
    auto const [kind, held] = content(graph);
    if (kind != "as_graph") refuse(program_, node, "it lacks the graph that it runs");
    locate(node, fields_.array(fields_.object(held, "graph"), "nodes"));
    if (casts && enabled)
      refuse(program_, node, "it computes in a type of its own, by torch.autocast",
             "leave torch.autocast out of forward(): precision.compute chooses the type");
    std::vector<ValueId> given;
    for (auto i = graph + 1; i < inputs.size(); ++i) {
      auto const [tag, value] = content(i);
      given.push_back(tag == "as_tensor" ? values_.use(fields_.text(value, "name"), describe(node))
                                         : -1);
    }
    if (++depth_ > deepest) refuse(program_, node, "its regions lie too deep within others");
    inline_graph(fields_.object(held, "graph"), given, fields_.array(node_json, "outputs"),
                 gradients ? !enabled : node.without_gradient);
    --depth_;
  }

  /// The node of a region has no line: that of the first within tells it.
  void locate(ExportedNode& region, Json const& nodes) const {
    for (auto const& node : nodes) {
      auto const& metadata = fields_.object(node, "metadata");
      if (!region.location.empty() || !metadata.contains("stack_trace")) continue;
      region.location = location_of(fields_.text(metadata, "stack_trace"));
    }
  }

  void inline_graph(Json const& graph, std::vector<ValueId> const& given, Json const& outputs,
                    bool without_gradient) {
    auto around = values_.enter(graph, given);
    for (auto const& node : fields_.array(graph, "nodes")) read_node(node, without_gradient);
    std::vector<std::optional<ValueId>> results;
    for (auto const& output : fields_.array(graph, "outputs")) {
      auto const [kind, value] = fields_.tagged(output, "a graph within its graph");
      if (kind == "as_tensor")
        results.emplace_back(values_.use(fields_.text(value, "name"), "a graph within its graph"));
      else
        results.emplace_back();
    }
    values_.leave(std::move(around));
    std::vector<std::string> names;
    for (auto const& output : outputs) {
      auto const [kind, value] = fields_.tagged(output, "a graph within its graph");
      for (auto const& tensor : value.is_array() ? value : Json::array({value}))
        names.push_back(kind.starts_with("as_tensor") ? fields_.text(tensor, "name") : "");
    }
    if (names.size() != results.size())
      fields_.refuse("a graph within its graph has other outputs than the graph expects");
    for (std::size_t i = 0; i < names.size(); ++i)
      if (results[i] && !names[i].empty()) values_.rename(names[i], *results[i]);
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
    std::map<std::string, std::vector<ExportedState const*>> by_record;
    std::map<ValueId, ValueId> first;
    std::vector<ExportedState> kept;
    for (auto const& state : program_.state) {
      auto& sharing = by_record[state.record];
      auto const same = std::ranges::find_if(sharing, [&](auto const* other) {
        return other->same_bytes(state) && has_shape(*other, state);
      });
      if (same == sharing.end() || state.kind != ExportedState::Kind::parameter) {
        for (auto const* other : sharing) check_apart(*other, state);
        sharing.push_back(&state);
        kept.push_back(state);
        continue;
      }
      first[state.value] = (*same)->value;
      program_.tied[state.name] = (*same)->name;
    }
    program_.state = std::move(kept);
    program_.replace(first);
  }

  bool has_shape(ExportedState const& a, ExportedState const& b) const {
    return program_.value(a.value).shape == program_.value(b.value).shape;
  }

  /// Parameters may be parts of one memory, but not views of the same elements.
  void check_apart(ExportedState const& a, ExportedState const& b) const {
    using Kind = ExportedState::Kind;
    if (a.kind != Kind::parameter || b.kind != Kind::parameter) return;
    if (elements_until(program_, a) <= b.offset || elements_until(program_, b) <= a.offset) return;
    fields_.archive().refuse(str(a.name, " and ", b.name, " share elements in different shapes"),
                             "use one parameter in forward(), and its view where the other was");
  }

  void check_logits() const {
    if (program_.output < 0) fields_.refuse("the model has no output");
    auto const& value = values_.value(program_.output);
    auto const& shape = value.shape;
    if (shape.size() == 2 && shape[0].is_samples() && shape[1].per_sample == 0) return;
    fields_.archive().refuse(
        str("the model's first output has shape ", shape_text(value),
            ", and a classifier's logits have [samples, classes]"),
        "wrap the model in one that returns these, such as a mean over what is between");
  }

  Fields fields_;
  Json const& graph_;
  Json const& signature_;
  GraphValues values_;
  ArgumentReader arguments_;
  ExportedProgram program_;
  int depth_ = 0;
};

/// Of a pass, as the graph was exported for at most so many; 0: for any number.
std::int64_t most_samples(Fields const& fields, Json const& file) {
  constexpr auto any = std::numeric_limits<std::int64_t>::max() / 2;
  if (!file.contains("range_constraints")) return 0;
  auto most = any;
  for (auto const& [symbol, range] : fields.object(file, "range_constraints").items())
    if (auto const& limit = fields.member(range, "max_val"); !limit.is_null())
      most = std::min(most, fields.as_integer(limit, "the range of " + symbol));
  return most == any ? 0 : most;
}

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

std::string describe(ExportedNode const& node) {
  return str("operator ", node.target, node.name.empty() ? "" : " " + node.name,
             node.module.empty() ? "" : " of module " + node.module,
             node.location.empty() ? "" : " (" + node.location + ")");
}

std::string shape_text(ExportedValue const& value) {
  std::vector<std::string> sizes;
  for (auto const& [fixed, per_sample] : value.shape) {
    auto const samples = per_sample == 1 ? "samples" : str(per_sample, " samples");
    sizes.push_back(per_sample == 0 ? std::to_string(fixed)
                    : fixed == 0    ? samples
                                    : str(samples, " + ", fixed));
  }
  return str("[", join(sizes, ", "), "]");
}

void ExportedProgram::replace(std::map<ValueId, ValueId> const& by) {
  auto const other = [&](ValueId& value) {
    if (auto const found = by.find(value); found != by.end()) value = found->second;
  };
  for (auto& node : nodes)
    for (auto& argument : node.arguments) {
      if (auto* tensor = std::get_if<ExportedArgument::Tensor>(&argument.value))
        other(tensor->value);
      if (auto* tensors = std::get_if<ExportedArgument::Tensors>(&argument.value))
        for (auto& value : tensors->values) other(value);
    }
}

void refuse(ExportedProgram const& program, ExportedNode const& node, std::string const& why,
            std::string const& cure) {
  throw Error(ExitCode::bad_data,
              str("model file ", program.path, ": ", describe(node), " cannot be used"), why, cure);
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
    archive.refuse(
        str("its schema is version ", major, " (torch ", torch_version, "), known is ",
            schema_major),
        "export it with torch 2.8 or later, up to the last whose files have this schema");
  auto program = ProgramReader(fields, file).read(name);
  restore_lifted_parameters(archive, program);
  program.most_samples = most_samples(fields, file);
  return program;
}

}  // namespace stratagem
