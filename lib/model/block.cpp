#include "model/block.hpp"

namespace stratagem {

int Declaration::parameter(ParameterSpec spec) {
  names_.push_back(spec.name);
  parameters_.push_back(std::move(spec));
  return static_cast<int>(parameters_.size()) - 1;
}

int Declaration::buffer(BufferSpec spec) {
  names_.push_back(spec.name);
  buffers_.push_back(std::move(spec));
  return static_cast<int>(buffers_.size()) - 1;
}

}  // namespace stratagem
