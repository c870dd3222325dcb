#include "strategy/state/model_layout.hpp"

#include <string>
#include <vector>

namespace stratagem {

at::ScalarType compute_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return at::kFloat;
    case Precision::bf16:
      return at::kBFloat16;
    case Precision::fp16:
      return at::kHalf;
    case Precision::fp64:
      return at::kDouble;
  }
  return at::kFloat;
}

at::ScalarType master_type(Precision precision) {
  return precision == Precision::fp64 ? at::kDouble : at::kFloat;
}

std::int64_t size_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}

ParameterLayout make_layout(Model const& model) {
  std::vector<std::vector<ParameterSpec>> specs;
  std::vector<std::vector<std::string>> borrowed;
  for (auto const& block : model.blocks) {
    specs.push_back(block->declaration().parameters());
    borrowed.push_back(block->declaration().borrowed());
  }
  return {specs, model.memory_format == MemoryFormat::channels_last, borrowed};
}

ParameterLayout layout_of_block(Model const& model, int block) {
  auto const& declaration = model.blocks[static_cast<std::size_t>(block)]->declaration();
  std::vector<ParameterSpec> lent;
  for (auto const& name : declaration.borrowed())
    for (int earlier = 0; earlier < block; ++earlier)
      for (auto const& spec :
           model.blocks[static_cast<std::size_t>(earlier)]->declaration().parameters())
        if (spec.name == name) lent.push_back(spec);
  return {{lent, declaration.parameters()},
          model.memory_format == MemoryFormat::channels_last,
          {{}, declaration.borrowed()}};
}

}  // namespace stratagem
