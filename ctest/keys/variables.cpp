#include "keys/variables.hpp"

#include <gtest/gtest.h>

#include "config/support.hpp"

namespace stratagem {
namespace {

Expansion expand(std::string const& text) {
  return expand_variables(text, test::environment({{"A", "1"}, {"B_2", "${A}"}, {"EMPTY", ""}}));
}

TEST(Variables, AreReplacedOnce) {
  EXPECT_EQ(expand("${A}/x${B_2}${EMPTY}.").text, "1/x${A}.");
  EXPECT_TRUE(expand("${A}").changed);
  EXPECT_FALSE(expand("plain $A $ }").changed);
  EXPECT_EQ(expand("plain $A $ }").text, "plain $A $ }");
}

TEST(Variables, DoubledDollarKeepsTheBraces) {
  EXPECT_EQ(expand("$${A}").text, "${A}");
  EXPECT_EQ(expand("$$${A}").text, "$${A}");
  for (std::string const text : {"", "$", "${", "$${", "$$$${{", "a${A}b", "$${A}${"}) {
    auto const expansion = expand(escape_variables(text));
    EXPECT_EQ(expansion.text, text);
    EXPECT_TRUE(expansion.complaints.empty()) << text;
  }
}

TEST(Variables, EveryUndefinedOneIsNamed) {
  auto const expansion = expand("${C}${A}${D}");
  EXPECT_EQ(expansion.complaints,
            (std::vector<std::string>{"undefined variable ${C}; export C=...",
                                      "undefined variable ${D}; export D=..."}));
  for (std::string const text : {"${", "${}", "${A", "${a b}", "${1}", "${A:-x}"})
    EXPECT_EQ(expand(text).complaints.size(), 1U) << text;
}

TEST(Variables, OfThisProcess) {
  EXPECT_FALSE(process_variable("STRATAGEM_NO_SUCH_VARIABLE").has_value());
  EXPECT_TRUE(process_variable("PATH").has_value());
}

}  // namespace
}  // namespace stratagem
