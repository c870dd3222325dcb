#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "model/exported/file/fields.hpp"
#include "model/exported/file/graph_values.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// Finds where in the archive the bytes of parameters, buffers and constants are. `graph` names the
/// tables that say it. Error(bad_data) if there is none, if one is pickled, or has another shape or
/// type than in the graph.
void find_state_records(Fields const& fields, GraphValues const& values, std::string const& graph,
                        std::vector<ExportedState>& state);

/// How many elements of its record it needs: up to its last one.
std::int64_t elements_until(ExportedProgram const& program, ExportedState const& state);

/// A contiguous tensor, on the CPU. Error(bad_data) if the record is too short.
at::Tensor read_state(ProgramArchive const& archive, ExportedProgram const& program,
                      ExportedState const& state);

}  // namespace stratagem
