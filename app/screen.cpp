#include "app/screen.hpp"

#include <iostream>
#include <utility>

#include <unistd.h>

#include "base/console/fit_text.hpp"
#include "base/console/terminal.hpp"

namespace stratagem::app {

Screen::Screen() {
  if (terminal_columns(STDOUT_FILENO) > 0) output_ = std::cout.rdbuf(kept_.rdbuf());
}

Screen::~Screen() {
  flush();
}

void Screen::flush() {
  if (output_ == nullptr) return;
  std::cout.rdbuf(std::exchange(output_, nullptr));
  std::cout << fit_text(kept_.str(), terminal_columns(STDOUT_FILENO)) << std::flush;
}

}  // namespace stratagem::app
