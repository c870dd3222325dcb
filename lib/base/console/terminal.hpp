#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// Characters that fit into a line of the terminal behind `descriptor`, as it is now; 0 when there
/// is none.
int terminal_columns(int descriptor);

/// A number and its unit, with a space between them: "12 s,", "(64 %)".
bool is_quantity(std::string_view number, std::string_view unit);

/// Lines longer than `columns` go on in the next one, from a space on and indented as their text;
/// a word that is longer stays whole, and so does a number with its unit. 0: as it is.
std::string fold_lines(std::string_view text, int columns);

/// A launcher collects what its processes write and shows it on its own terminal, where only it
/// knows the width. Where the launcher's is a terminal of this machine, and nobody asked it to mark
/// or keep the lines, stderr becomes that terminal. True when it did.
bool join_launchers_terminal();

}  // namespace stratagem
