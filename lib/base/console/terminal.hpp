#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// Characters per line of the terminal behind `descriptor`, at this moment; 0 if it is not a
/// terminal.
int terminal_columns(int descriptor);

/// A number and its unit, with a space between them: "12 s,", "(64 %)".
bool is_quantity(std::string_view number, std::string_view unit);

/// Folds lines longer than `columns` at a space, and indents the continuation like their text. A
/// longer word stays whole, and so does a number with its unit. 0: no change.
std::string fold_lines(std::string_view text, int columns);

/// A launcher collects the output of its processes and shows it on its own terminal, and only the
/// launcher knows the width. If that is a terminal of this machine, and the launcher was not told
/// to mark or store the lines, stderr becomes that terminal. True if it did.
bool join_launchers_terminal();

}  // namespace stratagem
