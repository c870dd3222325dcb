#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// The output of a command, fitted to a terminal of so many columns. Tables, as Table renders them,
/// are laid out again if they are too wide, and other long lines are folded. Output without tables
/// is for programs, or short, and stays as it is; so does everything with 0 columns.
std::string fit_text(std::string_view text, int columns);

}  // namespace stratagem
