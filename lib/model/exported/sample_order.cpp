#include "model/exported/sample_order.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace stratagem {
namespace {

ExportedNode const* maker_of(ExportedProgram const& program, ValueId value) {
  auto const makes = [&](ExportedNode const& node) {
    return std::ranges::find(node.outputs, value) != node.outputs.end();
  };
  auto const found = std::ranges::find_if(program.nodes, makes);
  return found == program.nodes.end() ? nullptr : &*found;
}

bool depends(Extent const& extent) {
  return extent.per_sample != 0;
}

/// The first argument that has a dimension of samples.
std::optional<ValueId> source_of(ExportedProgram const& program, ExportedNode const& node) {
  for (auto const& [_, value] : node.arguments)
    if (auto const* tensor = std::get_if<ExportedArgument::Tensor>(&value))
      if (std::ranges::any_of(program.value(tensor->value).shape, depends)) return tensor->value;
  return std::nullopt;
}

/// Elements before the dimension of samples: of the places that it can take, in the order of
/// memory. Empty if there are several, or none.
std::optional<std::int64_t> before_samples(std::vector<Extent> const& shape) {
  auto const found = std::ranges::find_if(shape, depends);
  if (std::ranges::count_if(shape, depends) != 1) return std::nullopt;
  std::int64_t product = 1;
  for (auto it = shape.begin(); it != found; ++it)
    if (__builtin_mul_overflow(product, it->fixed, &product)) return std::nullopt;
  return product;
}

}  // namespace

bool samples_lead(ExportedProgram const& program, ValueId value) {
  // Back to where the dimension was made: only a change of shape can merge two.
  for (;;) {
    auto const* node = maker_of(program, value);
    auto const source = node == nullptr ? std::nullopt : source_of(program, *node);
    if (!source) return false;
    auto const &made = program.value(value).shape, &from = program.value(*source).shape;
    if (std::ranges::none_of(from, [](Extent const& extent) { return extent.is_samples(); })) {
      value = *source;
      continue;
    }
    auto const name = node->base_name();
    bool const reshapes = name == "view" || name == "reshape" || name == "flatten";
    return reshapes && before_samples(made) == before_samples(from) && before_samples(from);
  }
}

}  // namespace stratagem
