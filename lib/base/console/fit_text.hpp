#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// What a command prints, for a terminal of so many columns. Where the text has tables, as Table
/// renders them, those that are too wide are laid out anew and other long lines folded. Anything
/// else is for programs, or short: it stays as it is, as everything does with 0 columns.
std::string fit_text(std::string_view text, int columns);

}  // namespace stratagem
