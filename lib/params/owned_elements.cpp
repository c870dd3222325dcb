#include "params/owned_elements.hpp"

namespace stratagem {

OwnedElements all_elements(ParameterLayout const& layout) {
  OwnedElements owned{.size = layout.size()};
  note_vectors(owned, layout, {0, layout.size()}, 0);
  return owned;
}

void note_vectors(OwnedElements& owned, ParameterLayout const& layout, FlatRange held,
                  std::int64_t begin) {
  for (auto const& entry : layout.entries()) {
    auto const part = overlap({entry.offset, entry.offset + entry.spec.numel()}, held);
    auto const shift = begin - held.begin;
    note_vector(owned, entry.spec, {part.begin + shift, part.end + shift});
  }
}

void note_vector(OwnedElements& owned, ParameterSpec const& spec, FlatRange range) {
  if (range.size() <= 0 || !spec.is_vector()) return;
  owned.vectors.push_back(range);
}

}  // namespace stratagem
