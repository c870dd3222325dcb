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
  std::vector<std::string> words_for(int ranks) const;
};

/// How a launcher ended.
struct Launched {
  int code = 0;    ///< its exit code; 128 + n for signal n
  int signal = 0;  ///< USR1, TERM or INT that came meanwhile; it has reached the launcher; 0: none
};

/// Starts `program` with `arguments` on `ranks` ranks and waits. Variables that belong to a
/// launcher around this process are not handed on. What all of them print is appended to `log`,
/// where one is named. Error(environment) when the launcher is not found.
Launched launch(Launcher const& launcher, int ranks, std::filesystem::path const& program,
                std::vector<std::string> const& arguments, std::filesystem::path const& log = {});

/// This program's own file.
std::filesystem::path own_program();

}  // namespace stratagem
