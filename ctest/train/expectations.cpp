#include "train/expectations.hpp"

#include <gtest/gtest.h>

#include "base/build_info.hpp"
#include "base/error.hpp"

namespace stratagem {
namespace {

std::map<std::string, std::string> here() {
  return facts({.name = "digits", .fingerprint = "0123456789abcdef"}, {}, 3);
}

TEST(Expectations, FactsAreWhatTheyAre) {
  auto const known = here();
  EXPECT_EQ(known.at("version"), build_info().version);
  EXPECT_EQ(known.at("device"), "cpu");
  EXPECT_EQ(known.at("ranks"), "3");
  EXPECT_EQ(known.at("dataset_fingerprint"), "0123456789abcdef");
}

TEST(Expectations, HoldOrAreToldAllAtOnce) {
  EXPECT_NO_THROW(check_expectations({}, here()));
  EXPECT_NO_THROW(check_expectations(here(), here()));
  try {
    check_expectations({{"ranks", "4"}, {"device", "cpu"}, {"version", "9"}}, here());
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    std::string const what = error.what();
    EXPECT_NE(what.find("expect.ranks is 4, but here it is 3"), what.npos) << what;
    EXPECT_NE(what.find("expect.version is 9"), what.npos) << what;
    EXPECT_EQ(what.find("expect.device"), what.npos) << what;
  }
}

}  // namespace
}  // namespace stratagem
