#pragma once

#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem::test {

/// Expects `action` to refuse the data, naming `fragment`.
template <class Action>
void expect_bad_data(Action const& action, std::string const& fragment) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected a message with: " << fragment;
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

}  // namespace stratagem::test
