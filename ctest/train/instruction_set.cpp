#include "train/instruction_set.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

using Texts = std::vector<std::string>;

TEST(InstructionSet, RanksThatAreAlikeAreNotTold) {
  EXPECT_FALSE(mixed_instructions(Texts{"AVX2 fma", "AVX2 fma"}));
  EXPECT_FALSE(mixed_instructions(Texts{"", "AVX2", ""})) << "servers do not compute";
  EXPECT_FALSE(mixed_instructions(Texts{"", ""}));
}

TEST(InstructionSet, NamesRanksAndWhatDiffers) {
  auto const told =
      mixed_instructions(Texts{"AVX512 v a b", "AVX512 v a b", "AVX2 v a", "", "AVX2 v a"});
  ASSERT_TRUE(told);
  EXPECT_EQ(*told, "ranks 2, 4 have AVX2, rank 0 has AVX512 b");
  EXPECT_EQ(*mixed_instructions(Texts{"", "A v", "A v MKL_CBWR=COMPATIBLE"}),
            "rank 2 has MKL_CBWR=COMPATIBLE, rank 1 has nothing more");
}

TEST(InstructionSet, HasTheProcessorsAndTheSettings) {
  ::setenv("MKL_CBWR", "COMPATIBLE", 1);
  EXPECT_EQ(kernel_settings(), "MKL_CBWR=COMPATIBLE");
  EXPECT_NE(instruction_set().find("MKL_CBWR=COMPATIBLE"), std::string::npos);
  ::unsetenv("MKL_CBWR");
  EXPECT_EQ(kernel_settings(), "");
  EXPECT_GT(instruction_set().size(), 5U);
}

}  // namespace
}  // namespace stratagem
