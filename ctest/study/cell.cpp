#include "study/cell.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

CellEntry sample() {
  return {.index = 7,
          .name = "p-lenet-s2",
          .group = "p-lenet",
          .part = "p",
          .model = "lenet",
          .dataset = "mnist",
          .variant = "ps-async",
          .strategy = "ps",
          .workers = 4,
          .servers = 2,
          .seed = 2,
          .global_batch = 64,
          .input_size = 32,
          .precision = "bf16",
          .epochs = 3,
          .max_steps = 5,
          .threads = 1,
          .settings = "model.weights=a,b \"c\";run.seed=2"};
}

std::string refusal(std::string const& text) {
  test::Scratch const folder;
  std::ofstream(folder / "cells.csv") << text;
  try {
    static_cast<void>(read_cells(folder / "cells.csv"));
    return "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
}

TEST(Cell, TheListReadsBack) {
  test::Scratch const folder;
  auto const text = cells_csv({sample(), sample()});
  std::ofstream(folder / "cells.csv") << text;
  auto const cells = read_cells(folder / "cells.csv");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells_csv(cells), text);
  EXPECT_EQ(cells[1].settings, sample().settings);
  EXPECT_EQ(cells[1].ranks(), 6);
}

TEST(Cell, AForeignListIsRefused) {
  auto const good = cells_csv({sample()});
  EXPECT_NE(refusal("index,cell\n1,a\n").find("line 1"), std::string::npos);
  auto const second = good.find('\n') + 1;
  auto broken = good;
  broken.replace(second, 1, "x");
  EXPECT_NE(refusal(broken).find("\"x\" as index"), std::string::npos) << refusal(broken);
  EXPECT_NE(refusal(good + "1,2\n").find("line 3"), std::string::npos);
}

TEST(Cell, FieldsInQuotes) {
  EXPECT_EQ(csv_fields("a,\"b,\"\"c\"\"\",,d"),
            (std::vector<std::string>{"a", "b,\"c\"", "", "d"}));
}

}  // namespace
}  // namespace stratagem
