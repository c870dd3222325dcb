#pragma once

#include <string>

#include "predict/forecast.hpp"

namespace stratagem::app {

/// What submits a planned run of the file `config`: `slurm/submit.sh --site SITE ...`, with the
/// time where it is predicted; what the site asks of the scheduler is the script's to know. Looks
/// for slurm/ under STRATAGEM_HOME, the present folder, or where the program comes from.
/// Error(usage) for an unknown site, naming the known ones, or one without a scheduler;
/// Error(environment) where there is no slurm/.
std::string submit_line(std::string const& site, Forecast const& forecast,
                        std::string const& config);

}  // namespace stratagem::app
