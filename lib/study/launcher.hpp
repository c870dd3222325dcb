#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// How programs of several ranks are started: words before the program, "{ranks}" standing for
/// their number.
struct Launcher {
  std::vector<std::string> words{"mpirun", "--bind-to", "none", "-n", "{ranks}"};

  /// "mpirun --bind-to none -n {ranks}". Error(usage) when it has no {ranks}.
  static Launcher parse(std::string const& text);
};

/// Starts `program` with `arguments` on `ranks` ranks, waits, and returns the exit code; 128 + n
/// for signal n. Variables that belong to a launcher around this process are not handed on. Error
/// (environment) when the launcher is not found.
int launch(Launcher const& launcher, int ranks, std::filesystem::path const& program,
           std::vector<std::string> const& arguments);

/// This program's own file.
std::filesystem::path own_program();

}  // namespace stratagem
