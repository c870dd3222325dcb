#include "model/exported/exported_model.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_block.hpp"

namespace stratagem {
namespace {

at::Tensor read_tensor(ProgramArchive const& archive, ExportedProgram const& program,
                       ExportedState const& state) {
  auto const& value = program.value(state.value);
  auto const shape = value.fixed_shape();
  auto const bytes = archive.bytes_of(state.record);
  auto const wanted =
      c10::multiply_integers(shape) * static_cast<std::int64_t>(c10::elementSize(value.type));
  if (std::cmp_not_equal(bytes, wanted))
    archive.refuse(
        str("its values of ", state.name, " have ", bytes, " bytes, its shape needs ", wanted));
  auto tensor = at::empty(shape, value.type);
  archive.read(state.record, tensor.data_ptr(), bytes);
  return tensor;
}

/// Convolutions of images are fastest in channels_last, unless the model reorders dimensions
/// itself.
bool prefers_channels_last(ExportedProgram const& program) {
  auto const has = [&](std::string_view target) {
    return std::ranges::any_of(program.nodes,
                               [&](auto const& node) { return node.target == target; });
  };
  return has("aten::conv2d") && !has("aten::permute") && !has("aten::layer_norm");
}

std::set<ValueId> unused_state(ExportedGraph const& graph) {
  std::set<ValueId> unused;
  for (auto const& state : graph.program.state)
    if (state.kind != ExportedState::Kind::constant) unused.insert(state.value);
  for (auto const& instruction : graph.flow.instructions())
    for (auto input : instruction.inputs()) unused.erase(input);
  return unused;
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
  auto const& shape = program.value(program.input).shape;
  ExportedInput input{.classes = program.value(program.output).shape[1].fixed};
  bool const image = shape.size() == 4 && shape[2] == shape[3] && shape[2].per_sample == 0 &&
                     at::isFloatingType(program.value(program.input).type);
  if (image) {
    input.channels = shape[1].fixed;
    input.size = shape[2].fixed;
  }
  return input;
}

void check(ModelConfig const& config, InputShape const& given, ExportedInput const& wanted) {
  if (given.size == 0) return;
  if (wanted.size == 0)
    throw Error(ExitCode::usage, str("model file ", config.file, " does not take square images"),
                "datasets here have images [samples, channels, size, size]");
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

ExportedInput exported_input(std::filesystem::path const& file) {
  return input_of(read_program(ProgramArchive(file)));
}

Model make_exported_model(ModelConfig const& config, InputShape const& input) {
  ProgramArchive const archive(config.file);
  auto graph = std::make_shared<ExportedGraph>(read_program(archive));
  check(config, input, input_of(graph->program));
  for (auto const& state : graph->program.state)
    if (state.kind == ExportedState::Kind::constant)
      graph->constants.emplace_back(state.value, read_tensor(archive, graph->program, state));
  Model model{.name = config.name,
              .head = head_of(*graph),
              .fused = config.fused,
              .graph = digest_of(graph->program)};
  model.tied = graph->program.tied;
  model.classes = graph->program.value(graph->program.output).shape[1].fixed;
  if (has_single_values(graph->flow)) model.two_sample_input = input.size;
  auto unused = unused_state(*graph);
  for (auto const& state : graph->program.state)
    if (state.kind == ExportedState::Kind::parameter && unused.contains(state.value))
      model.unused.push_back(state.name);
  for (auto const& range : block_ranges(graph->flow))
    model.blocks.push_back(
        std::make_unique<ExportedBlock>(graph, range, std::exchange(unused, {})));
  model.memory_format = config.memory_format;
  if (model.memory_format == MemoryFormat::automatic)
    model.memory_format = prefers_channels_last(graph->program) ? MemoryFormat::channels_last
                                                                : MemoryFormat::contiguous;
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
    tensors.emplace(state.name, read_tensor(archive, program, state));
  }
  return tensors;
}

}  // namespace stratagem
