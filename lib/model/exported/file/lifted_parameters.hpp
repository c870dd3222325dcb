#pragma once

#include "model/exported/program.hpp"

namespace stratagem {

/// A parameter that forward() reaches otherwise than as an attribute of a module, through a list
/// for example, is exported as a constant, and as a parameter that nothing uses. Where their values
/// tell that they are one, nodes read the parameter. Error(bad_data) names a parameter that could
/// be one of several constants, or whose equal values say too little, such as zeros.
void restore_lifted_parameters(ProgramArchive const& archive, ExportedProgram& program);

}  // namespace stratagem
