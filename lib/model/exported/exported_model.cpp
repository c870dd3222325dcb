#include "model/exported/exported_model.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_block.hpp"
#include "model/exported/file/state_records.hpp"
#include "model/exported/stride_dependence.hpp"

namespace stratagem {
namespace {

/// Convolutions of images are fastest in channels_last, unless the model reorders dimensions
/// itself.
bool prefers_channels_last(ExportedProgram const& program) {
  auto const has = [&](std::string_view target) {
    return std::ranges::any_of(program.nodes,
                               [&](auto const& node) { return node.target == target; });
  };
  return has("aten::conv2d") && !has("aten::permute") && !has("aten::layer_norm");
}

/// What no instruction uses.
std::set<ValueId> unused_state(ExportedGraph const& graph) {
  std::set<ValueId> unused;
  for (auto const& state : graph.program.state)
    if (state.kind != ExportedState::Kind::constant) unused.insert(state.value);
  for (auto const& instruction : graph.flow.instructions())
    for (auto input : instruction.inputs()) unused.erase(input);
  return unused;
}

MemoryFormat format_of(ExportedGraph const& graph, ModelConfig const& config) {
  auto const by_strides = stride_dependence(graph.flow);
  if (by_strides) {
    check_strides(graph.program, *by_strides);
    if (config.memory_format == MemoryFormat::channels_last)
      throw Error(ExitCode::usage, "model.memory_format: channels_last is not for this model",
                  str(describe(*by_strides->node), " ", by_strides->why),
                  "set it to auto, or contiguous");
    return MemoryFormat::contiguous;
  }
  if (config.memory_format != MemoryFormat::automatic) return config.memory_format;
  return prefers_channels_last(graph.program) ? MemoryFormat::channels_last
                                              : MemoryFormat::contiguous;
}

void check_training(ExportedGraph const& graph, ModelConfig const& config) {
  auto const& program = graph.program;
  if (graph.flow.gradients().trained().empty())
    throw Error(ExitCode::bad_data, str("model file ", program.path, " has nothing to train"),
                "its parameters are frozen, or no gradient reaches them",
                "set requires_grad of what is to be trained, and export the model again");
  auto const* read = graph.flow.read_back();
  if (read != nullptr && config.recompute.every > 0)
    throw Error(ExitCode::usage, "model.recompute is not for this model",
                str("blocks would run again with another value of buffer ", read->name, " of ",
                    program.path, ", which forward() reads and writes"),
                "leave model.recompute out");
}

/// Parameters of the last operator that has any.
std::vector<std::string> head_of(ExportedGraph const& graph) {
  std::vector<std::string> names;
  auto const& instructions = graph.flow.instructions();
  for (auto i = instructions.size(); i-- > 0 && names.empty();)
    for (auto const& state : graph.program.state)
      if (state.kind == ExportedState::Kind::parameter &&
          std::ranges::count(instructions[i].inputs(), state.value) > 0)
        names.push_back(state.name);
  return names;
}

ExportedInput input_of(ExportedProgram const& program) {
  auto const& value = program.value(program.input);
  ExportedInput input{.classes = program.value(program.output).shape[1].fixed,
                      .shape = str(shape_text(value), " of ", at::toString(value.type))};
  auto const& shape = value.shape;
  bool const image = shape.size() == 4 && shape[2] == shape[3] && shape[2].per_sample == 0 &&
                     at::isFloatingType(value.type);
  if (image) {
    input.channels = shape[1].fixed;
    input.size = shape[2].fixed;
  }
  return input;
}

void check(ModelConfig const& config, InputShape const& given, ExportedInput const& wanted) {
  if (given.is_text())
    throw Error(ExitCode::usage,
                str("model file ", config.file, " is trained on images, and the data are text"), {},
                "take a model of text (`stratagem list models`), or images");
  if (given.size == 0) return;
  if (wanted.size == 0) refuse_input(config.file, wanted);
  if (given.size != wanted.size)
    throw Error(ExitCode::usage,
                str("data.input_size is ", given.size, ", but model file ", config.file,
                    " was exported for images of ", wanted.size, " pixels"),
                {}, str("set data.input_size to ", wanted.size, ", or export it for another size"));
  if (config.num_classes != 0 && config.num_classes != wanted.classes)
    throw Error(ExitCode::usage,
                str("model.num_classes is ", config.num_classes, ", but model file ", config.file,
                    " has ", wanted.classes, " logits"),
                {}, "leave model.num_classes out, or export the model for as many classes");
}

/// Whether a batch norm gets one value per channel and sample.
bool has_single_values(Flow const& flow) {
  return std::ranges::any_of(flow.instructions(), [&](Instruction const& instruction) {
    if (instruction.kind() != Instruction::Kind::batch_norm) return false;
    auto const& shape = flow.program().value(instruction.inputs().front()).shape;
    return std::ranges::all_of(shape.begin() + std::min<std::ptrdiff_t>(2, std::ssize(shape)),
                               shape.end(),
                               [](Extent const& extent) { return extent == Extent{.fixed = 1}; });
  });
}

}  // namespace

void refuse_input(std::filesystem::path const& file, ExportedInput const& input) {
  throw Error(ExitCode::usage, str("model file ", file.string(), " does not take square images"),
              str("its input has shape ", input.shape,
                  ", and datasets here have images [samples, channels, size, size]"),
              "export a model of square images");
}

ExportedInput exported_input(std::filesystem::path const& file) {
  return input_of(read_program(ProgramArchive(file)));
}

Model make_exported_model(ModelConfig const& config, InputShape const& input) {
  ProgramArchive const archive(config.file);
  auto graph = std::make_shared<ExportedGraph>(read_program(archive));
  check(config, input, input_of(graph->program));
  check_training(*graph, config);
  for (auto const& state : graph->program.state)
    if (state.kind == ExportedState::Kind::constant)
      graph->constants.push_back(
          {state.value, read_state(archive, graph->program, state), state.literal});
  Model model{.name = config.name,
              .head = head_of(*graph),
              .fused = config.fused,
              .graph = digest_of(graph->program)};
  model.tied = graph->program.tied;
  model.classes = graph->program.value(graph->program.output).shape[1].fixed;
  model.most_samples = graph->program.most_samples;
  if (has_single_values(graph->flow)) model.two_sample_input = input.size;
  auto const& trained = graph->flow.gradients().trained();
  for (auto const& state : graph->program.state)
    if (state.kind == ExportedState::Kind::parameter && !trained.contains(state.value))
      model.unused.push_back(state.name);
  auto unused = unused_state(*graph);
  for (auto const& range : block_ranges(graph->flow))
    model.blocks.push_back(
        std::make_unique<ExportedBlock>(graph, range, std::exchange(unused, {})));
  model.memory_format = format_of(*graph, config);
  return model;
}

void try_exported_model(Model const& model, InputShape const& input) {
  constexpr std::int64_t samples = 2;
  at::NoGradGuard const no_gradients;
  at::Tensor x = at::zeros({samples, input.channels, input.size, input.size});
  Context const context;
  for (auto const& block : model.blocks) {
    std::vector<at::Tensor> parameters, buffers;
    for (auto const& spec : block->declaration().parameters())
      parameters.push_back(at::zeros(spec.shape));
    for (auto const& spec : block->declaration().buffers())
      buffers.push_back(at::zeros(spec.shape, spec.type));
    x = block->forward(x, {parameters, buffers, context});
  }
  if (x.sizes() != at::IntArrayRef({samples, model.classes}))
    throw Error(ExitCode::bad_data, "model file of " + model.name + " contradicts itself",
                stratagem::str("its operators make logits of shape ", x.sizes(),
                               ", its graph says ", at::IntArrayRef({samples, model.classes})),
                "export the model again with analysis/export_model.py");
}

TensorMap exported_state(std::filesystem::path const& file) {
  ProgramArchive const archive(file);
  auto const program = read_program(archive);
  TensorMap tensors;
  std::size_t bytes = 0;
  for (auto const& state : program.state) {
    if (state.kind == ExportedState::Kind::constant) continue;
    bytes += archive.bytes_of(state.record);
    if (bytes > archive.bytes()) archive.refuse("its tensors share bytes");
    tensors.emplace(state.name, read_state(archive, program, state));
  }
  return tensors;
}

}  // namespace stratagem
