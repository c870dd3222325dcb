#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stratagem {

/// How programs with several ranks are started: the words before the program; "{ranks}" is replaced
/// by their number.
struct Launcher {
  std::vector<std::string> words{"mpirun", "--bind-to", "none", "-n", "{ranks}"};

  /// "mpirun --bind-to none -n {ranks}". Error(usage) if it does not contain {ranks}.
  static Launcher parse(std::string const& text);
  std::vector<std::string> words_for(int ranks) const;
};

/// How a launcher ended.
struct Launched {
  int code = 0;    ///< its exit code; 128 + n for signal n
  int signal = 0;  ///< USR1, TERM or INT that was passed on to the launcher meanwhile; 0: none
};

/// Starts `program` with `arguments` on `ranks` ranks and waits. Variables of a launcher around
/// this process are not passed on. The output of all ranks is appended to `log`, if there is one.
/// Error(environment) if the launcher is not found.
Launched launch(Launcher const& launcher, int ranks, std::filesystem::path const& program,
                std::vector<std::string> const& arguments, std::filesystem::path const& log = {});

/// The file of this program.
std::filesystem::path own_program();

}  // namespace stratagem
