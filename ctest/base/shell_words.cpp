#include "base/console/shell_words.hpp"

#include <array>
#include <cstdio>

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

/// What a shell hands to a command, a line each.
std::string taken_apart(std::string const& line) {
  auto* const shell = ::popen(("printf '%s|' " + line).c_str(), "r");
  std::string text;
  std::array<char, 256> piece{};
  while (auto const count = std::fread(piece.data(), 1, piece.size(), shell))
    text.append(piece.data(), count);
  ::pclose(shell);
  return text;
}

TEST(ShellWords, AreWhatAShellTakesApartAgain) {
  std::array<std::string, 6> const words{"run", "a b", "it's", "$HOME", "", "x\ny*"};
  EXPECT_EQ(taken_apart(shell_words(words)), "run|a b|it's|$HOME||x\ny*|");
}

TEST(ShellWords, LeavesPlainOnesAsTheyAre) {
  std::array<std::string, 3> const words{"run", "runs/mini-1", "model.name=lenet"};
  EXPECT_EQ(shell_words(words), "run runs/mini-1 model.name=lenet");
}

}  // namespace
}  // namespace stratagem
