#pragma once

#include <string>

#include "model/exported/fields.hpp"
#include "model/exported/graph_values.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// Finds where in the archive the bytes of parameters, buffers and constants are. `graph` names the
/// tables that say it. Error(bad_data) if there is none, if one is pickled, or has another shape or
/// type than in the graph.
void find_state_records(Fields const& fields, GraphValues const& values, std::string const& graph,
                        std::vector<ExportedState>& state);

}  // namespace stratagem
