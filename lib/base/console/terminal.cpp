#include "base/console/terminal.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

/// Options with which mpirun does more than show the lines of its processes.
constexpr std::array<std::string_view, 7> treatments = {
    "tag-output", "timestamp-output",      "output-filename", "output", "xml",
    "xterm",      "merge-stderr-to-stdout"};

bool treats_output(int process) {
  std::ifstream file(str("/proc/", process, "/cmdline"), std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) {
    auto const name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    bool const is_option = name.size() < word.size();
    if (is_option && std::ranges::find(treatments, name) != treatments.end()) return true;
  }
  return false;
}

bool is_pipe(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

/// For example between "5" and "s".
bool splits_quantity(std::string_view line, std::size_t space) {
  auto const before = line.substr(0, space);
  auto const number = before.substr(before.find_last_of(' ') + 1);  // npos + 1 is 0
  auto const after = line.substr(space + 1);
  return is_quantity(number, after.substr(0, after.find(' ')));
}

void fold_line(std::string_view line, std::size_t columns, std::string& folded) {
  auto const indent = std::min(line.find_first_not_of(' '), line.size()) + 2;
  std::string_view const blanks = "                                ";
  std::size_t used = 0;
  while (used + line.size() > columns) {
    auto const text = std::min(line.find_first_not_of(' '), line.size());
    auto space = line.rfind(' ', columns - used);
    if (space != line.npos && space > text && splits_quantity(line, space))
      space = line.rfind(' ', space - 1);
    if (space == line.npos || space <= text) space = line.find(' ', text);
    if (space == line.npos) break;
    folded.append(line.substr(0, space)).append("\n");
    line.remove_prefix(std::min(line.find_first_not_of(' ', space), line.size()));
    if (line.empty()) return;
    folded.append(blanks.substr(0, std::min({indent, columns / 2, blanks.size()})));
    used = std::min({indent, columns / 2, blanks.size()});
  }
  folded.append(line);
}

}  // namespace

bool is_quantity(std::string_view number, std::string_view unit) {
  static constexpr std::array<std::string_view, 9> units{
      "%", "s", "ms", "us", "MiB", "GiB", "steps", "images/s", "tokens/s"};
  auto const digit = number.find_first_of("0123456789");
  auto const bare = unit.substr(0, unit.find_last_not_of(",.;)") + 1);
  return digit != number.npos && digit == number.find_first_not_of('(') &&
         std::ranges::find(units, bare) != units.end();
}

int terminal_columns(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) == 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::string fold_lines(std::string_view text, int columns) {
  std::string folded;
  if (columns <= 0) return std::string(text);
  while (!text.empty()) {
    auto const end = std::min(text.find('\n'), text.size());
    fold_line(text.substr(0, end), static_cast<std::size_t>(columns), folded);
    if (end < text.size()) folded += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return folded;
}

bool join_launchers_terminal() {
  auto const launcher = ::getppid();
  if (!is_pipe(STDERR_FILENO) || treats_output(launcher)) return false;
  auto const path = str("/proc/", launcher, "/fd/", STDERR_FILENO);
  std::error_code unknown;
  auto const target = std::filesystem::read_symlink(path, unknown).string();
  if (!target.starts_with("/dev/pts/") && !target.starts_with("/dev/tty")) return false;
  int const terminal = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (terminal < 0) return false;
  bool const joined = ::isatty(terminal) != 0 && ::fcntl(terminal, F_SETFL, 0) == 0 &&
                      ::dup2(terminal, STDERR_FILENO) >= 0;
  ::close(terminal);
  // With `stty tostop`, writing would stop a process that is not in the terminal's foreground.
  if (joined) std::signal(SIGTTOU, SIG_IGN);
  return joined;
}

}  // namespace stratagem
