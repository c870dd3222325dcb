#include "model/block.hpp"

#include <stdexcept>

namespace stratagem {

int Declaration::parameter(ParameterSpec spec) {
  if (!borrowed_.empty()) throw std::logic_error("a block's own parameters come first");
  names_.push_back(spec.name);
  parameters_.push_back(std::move(spec));
  return static_cast<int>(parameters_.size()) - 1;
}

int Declaration::buffer(BufferSpec spec) {
  names_.push_back(spec.name);
  buffers_.push_back(std::move(spec));
  return static_cast<int>(buffers_.size()) - 1;
}

int Declaration::borrow(std::string name) {
  borrowed_.push_back(std::move(name));
  return static_cast<int>(parameters_.size() + borrowed_.size()) - 1;
}

}  // namespace stratagem
