#pragma once

#include <cstdint>
#include <vector>

#include "params/parameter_layout.hpp"

namespace stratagem {

/// The elements that a rank updates, one after the other in a flat space of their own.
struct OwnedElements {
  std::int64_t size = 0;
  /// Those that belong to vectors, biases and the scales of norms: in any order, without overlap.
  std::vector<FlatRange> vectors = {};
};

/// All of a layout.
OwnedElements all_elements(ParameterLayout const& layout);

/// Notes which of the elements `held` of a layout, which begin at `begin` among the owned ones,
/// belong to parameters of one dimension.
void note_vectors(OwnedElements& owned, ParameterLayout const& layout, FlatRange held,
                  std::int64_t begin);
/// The same of one range of the owned elements that belongs to one parameter.
void note_vector(OwnedElements& owned, ParameterSpec const& spec, FlatRange range);

}  // namespace stratagem
