#include "base/contract.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace stratagem {
namespace {

TEST(Contract, ViolationNamesFunctionPlaceAndText) {
  EXPECT_NO_THROW(expects(true, "never shown"));
  try {
    expects(false, "a positive size");
    FAIL() << "expects(false) returned";
  } catch (std::logic_error const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find("contract.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("precondition"), std::string::npos) << text;
    EXPECT_NE(text.find("a positive size"), std::string::npos) << text;
  }
  EXPECT_THROW(ensures(false, "x"), std::logic_error);
}

TEST(Contract, ErrorComposesWhatWhyCure) {
  EXPECT_STREQ(Error(ExitCode::io, "what", "why", "cure").what(), "what (why); cure");
  EXPECT_STREQ(Error(ExitCode::io, "what").what(), "what");
  EXPECT_STREQ(Error(ExitCode::io, "what", "", "cure").what(), "what; cure");
}

TEST(Contract, EveryExitCodeIsDescribed) {
  for (auto code : all_exit_codes) EXPECT_NE(describe(code), "unknown") << to_int(code);
}

}  // namespace
}  // namespace stratagem
