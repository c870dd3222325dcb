#include "strategy/shared/model_layout.hpp"

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
  for (auto const& block : model.blocks) specs.push_back(block->declaration().parameters());
  return {specs, model.memory_format == MemoryFormat::channels_last};
}

}  // namespace stratagem
