#pragma once

#include <string>

#include "base/console/table.hpp"
#include "predict/calibration.hpp"

namespace stratagem::app {

/// Of a file, or of one of the references that come with the program, by its name. A word that is
/// no file's is taken for a name. Error(usage) naming what there is.
Calibration find_calibration(std::string const& file_or_name);

/// The references, with their sources.
Table reference_calibrations();

}  // namespace stratagem::app
