#pragma once

#include "base/exit_code.hpp"

namespace stratagem::app {

/// For the start of main(). Descriptors 0 to 2 are open afterwards, so that no other file gets one
/// of them, and writing to a pipe that nobody reads fails instead of ending the process.
void secure_standard_streams();

/// For the end of main(): `code`, or that of I/O, with a message, when what was written to stdout
/// did not get there. A pipe whose reader has gone ends the process quietly, as it would `ls`.
ExitCode after_writing_all(ExitCode code);

}  // namespace stratagem::app
