#pragma once

#include <optional>

#include "model/exported/flow.hpp"

namespace stratagem {

/// The first node whose result depends on how values lie in memory, so on the memory format; and
/// why, to follow its name. as_strided() and the like are such. So is a write through a view that
/// format channels_last would make a copy, when somebody reads the other side of it later.
struct StrideDependence {
  ExportedNode const* node;
  char const* why;
};
std::optional<StrideDependence> stride_dependence(Flow const& flow);

/// Where there is such a node. Error(bad_data) if the user's Python had parameters or an input that
/// are not contiguous: then strides there were others than here.
void check_strides(ExportedProgram const& program, StrideDependence const& found);

}  // namespace stratagem
