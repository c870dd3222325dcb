#pragma once

#include "model/exported/program.hpp"

namespace stratagem {

/// Of a value whose first extent is a multiple of the number of samples: whether the elements of a
/// sample stand together, as those of its heads do in [samples * heads, t, t]. False where that
/// cannot be told.
bool samples_lead(ExportedProgram const& program, ValueId value);

}  // namespace stratagem
