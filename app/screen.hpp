#pragma once

#include <sstream>

namespace stratagem::app {

/// While it lives, what is written to std::cout is kept, and what flush() shows fits the terminal,
/// where stdout is one. Commands print as into a file.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(Screen const&) = delete;
  Screen& operator=(Screen const&) = delete;

  void flush();

 private:
  std::ostringstream kept_;
  std::streambuf* output_ = nullptr;  ///< where std::cout leads without it; nullptr: untouched
};

}  // namespace stratagem::app
