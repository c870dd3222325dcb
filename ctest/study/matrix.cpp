#include "study/matrix.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

using Lines = std::vector<std::string>;

KnownNames const names{{"mnist", "cifar10"}, {"lenet", "vgg16"}};

Study read(std::string const& text, Lines const& overrides = {}) {
  return read_study(text, "s.yaml", overrides, names, [](auto const&) { return std::nullopt; });
}

/// The lines of the error; none where the study is accepted.
Lines problems(std::string const& text, Lines const& overrides = {}) {
  try {
    static_cast<void>(read(text, overrides));
    return {};
  } catch (Error const& error) {
    if (error.code() != ExitCode::usage) return {"not an Error(usage)"};
    return split(error.what(), '\n');
  }
}

std::string const head =
    "schema: 1\n"
    "name: two\n"
    "base: {data: {dataset: mnist, global_batch: 64}, optimizer: {lr: 0.1}}\n"
    "variants:\n"
    "  ddp: {strategy: {name: ddp}}\n"
    "  zero1: {strategy: {name: fsdp, shard: optimizer}}\n"
    "  ps-async: {strategy: {name: ps, mode: async, servers: 2}}\n"
    "parts:\n";
std::string const one_part =
    "  p:\n"
    "    matrix: {model.name: [lenet], variant: [ddp], workers: [2]}\n";

Lines names_of(Study const& study) {
  Lines names;
  for (auto const& cell : study.cells) names.push_back(cell.entry.name);
  return names;
}

TEST(Matrix, IsTheProductOfTheAxesWithoutTheExcludedCells) {
  auto const study = read(head +
                          "  p:\n"
                          "    matrix:\n"
                          "      variant: [ddp, ps-async]\n"
                          "      model.name: [lenet, vgg16]\n"
                          "      workers: [1, 2]\n"
                          "      run.seed: [1, 2]\n"
                          "    exclude:\n"
                          "      - {variant: ddp, model.name: vgg16}\n"
                          "      - {variant: ps-async, workers: [2], run.seed: [1, 2]}\n");
  EXPECT_EQ(study.name, "two");
  EXPECT_EQ(names_of(study),
            (Lines{"p-ddp-lenet-w1-s1", "p-ddp-lenet-w1-s2", "p-ddp-lenet-w2-s1",
                   "p-ddp-lenet-w2-s2", "p-ps-async-lenet-w1-s1", "p-ps-async-lenet-w1-s2",
                   "p-ps-async-vgg16-w1-s1", "p-ps-async-vgg16-w1-s2"}));
  for (std::size_t i = 0; i < study.cells.size(); ++i)
    EXPECT_EQ(study.cells[i].entry.index, static_cast<int>(i));
  auto const& last = study.cells.back();
  EXPECT_EQ(last.entry.group, "p-ps-async-vgg16-w1");
  EXPECT_EQ(last.entry.settings, "variant=ps-async;model.name=vgg16;workers=1;run.seed=2");
  EXPECT_EQ(last.entry.variant, "ps-async");
  EXPECT_EQ(last.entry.strategy, "ps");
  EXPECT_EQ(last.entry.ranks(), 3) << "a worker and its two servers";
  EXPECT_EQ(last.config.run.ranks, 3);
  EXPECT_EQ(last.config.run.name, "p-ps-async-vgg16-w1-s2");
  EXPECT_EQ(last.config.run.seed, 2U);
}

TEST(Matrix, LaterSettingsCount) {
  auto const study = read(head +
                              "  p:\n"
                              "    base: {optimizer: {lr: 0.2}, run: {epochs: 3}}\n"
                              "    matrix: {model.name: [lenet], variant: [ddp]}\n"
                              "  q:\n"
                              "    matrix: {model.name: [lenet], variant: [zero1], "
                              "optimizer.lr: [0.3, 0.4], data.batch_per_worker: [8], "
                              "data.global_batch: [0], workers: [4]}\n",
                          {"run.epochs=7"});
  ASSERT_EQ(names_of(study), (Lines{"p-lenet-ddp", "q-lenet-zero1-lr0.3-batch_per_worker8-b0-w4",
                                    "q-lenet-zero1-lr0.4-batch_per_worker8-b0-w4"}));
  EXPECT_EQ(study.cells[0].config.optimizer.lr, 0.2);
  EXPECT_EQ(study.cells[2].config.optimizer.lr, 0.4);
  EXPECT_EQ(study.cells[0].config.run.epochs, 7) << "an override holds for all cells";
  EXPECT_EQ(study.cells[2].entry.epochs, 7);
  EXPECT_EQ(study.cells[2].entry.global_batch, 32) << "8 for each of 4 workers";
  EXPECT_EQ(std::get<FsdpConfig>(study.cells[2].config.strategy).shard, Shard::optimizer);
  EXPECT_EQ(study.cells[0].entry.workers, 1) << "where nothing is said";
}

TEST(Matrix, AnOverrideDoesNotReplaceWhatMakesCellsDiffer) {
  auto const text = head +
                    "  p:\n"
                    "    matrix: {model.name: [lenet], variant: [ddp, zero1], run.seed: [1, 2]}\n";
  EXPECT_EQ(problems(text, {"run.epochs=2", "run.seed=7"}),
            (Lines{"-s run.seed=7: run.seed: is an axis of parts.p.matrix; leave it out, or change "
                   "the study"}));
  EXPECT_EQ(problems(text, {"strategy.name=local"}).front(),
            "-s strategy.name=local: strategy.name: is set by variant ddp; leave it out, or change "
            "the study");
  EXPECT_EQ(problems(text, {"optimizer.lr=0.3"}), Lines{}) << "of all cells alike";
}

struct Mistake {
  std::string text;  ///< behind `head`
  std::string line;  ///< of the message
};

TEST(Matrix, EveryMistakeHasAPlace) {
  for (auto const& [text, line] : {
           Mistake{
               "  p: {matrix: {model.name: [lenett], variant: [ddp]}}\n",
               "s.yaml:9:29: model.name: is \"lenett\", must be one of lenet, vgg16 (did you mean "
               "\"lenet\"?)"},
           Mistake{
               "  p: {matrix: {model.name: [lenet], variant: [dpp]}}\n",
               "s.yaml:9:47: parts.p.matrix.variant: \"dpp\" is not among the variants (did you "
               "mean \"ddp\"?)"},
           Mistake{"  p: {matrix: {model.nmae: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:16: model.nmae: unknown key (did you mean \"name\"?)"},
           Mistake{
               "  p: {matrix: {optimiser.lr: [0.1, 0.2], model.name: [lenet], variant: [ddp]}}\n",
               "s.yaml:9:16: optimiser.lr: unknown section (did you mean \"optimizer\"?)"},
           Mistake{"  p: {matrix: {foo.bar: [1], model.name: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:16: foo.bar: unknown section"},
           Mistake{
               "  p: {matrix: {worker: [1]}}\n",
               "s.yaml:9:16: parts.p.matrix.worker: is not an axis; take section.key, variant or "
               "workers"},
           Mistake{"  p: {matrix: {workers: [0], model.name: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:26: parts.p.matrix.workers: is \"0\", must be a whole number from 1"},
           Mistake{"  p: {matrix: {workers: [1, 1], model.name: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:29: parts.p.matrix.workers: \"1\" is here twice"},
           Mistake{
               "  p: {matrix: {optimizer.lr: [0.1, 0.10], model.name: [lenet], variant: [ddp]}}\n",
               "s.yaml:9:36: parts.p.matrix.optimizer.lr: \"0.10\" is here twice"},
           Mistake{"  p: {matrix: {model.name: lenet, variant: [ddp]}}\n",
                   "s.yaml:9:28: parts.p.matrix.model.name: a list of values is expected"},
           Mistake{"  p: {matrix: {model.name: [], variant: [ddp]}}\n",
                   "s.yaml:9:28: parts.p.matrix.model.name: is empty"},
           Mistake{
               "  p: {matrix: {run.ranks: [2], model.name: [lenet], variant: [ddp]}}\n",
               "s.yaml:9:16: parts.p.matrix.run.ranks: follows from the matrix; workers says how "
               "many train"},
           Mistake{"  p: {base: {run: {out: x}}, matrix: {model.name: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:20: run.out: follows from the matrix; leave it out"},
           Mistake{"  p: {bass: {}, matrix: {model.name: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:7: parts.p.bass: unknown key (did you mean \"base\"?)"},
           Mistake{"  p: {base: {}}\n", "s.yaml:9:3: parts.p.matrix: missing; it says what varies"},
           Mistake{"  a/b: {matrix: {model.name: [lenet], variant: [ddp]}}\n",
                   "s.yaml:9:3: parts.\"a/b\": is not a name made of letters, digits, _, - and ."},
           Mistake{one_part + "    exclude: [{variant: zero1}]\n",
                   "s.yaml:11:25: parts.p.exclude: \"zero1\" is not a value of variant"},
           Mistake{one_part + "    exclude: [{run.seed: 1}]\n",
                   "s.yaml:11:16: parts.p.exclude: \"run.seed\" is not an axis of this part"},
           Mistake{one_part + "    exclude: [{variant: ddp}]\n",
                   "s.yaml:1:1: parts: the study has no cell: all are excluded"},
           Mistake{"  p: {matrix: {model.name: [lenet], strategy.name: [serial], workers: [2]}}\n",
                   "s.yaml:9:3: parts.p.matrix: p-lenet-serial-w2 is serial with several workers; "
                   "exclude it"},
           Mistake{one_part + "  p: {matrix: {model.name: [lenet]}}\n",
                   "s.yaml:11:3: parts.p: duplicate key, first given in line 9"},
       }) {
    auto const lines = problems(head + text);
    EXPECT_EQ(std::ranges::count(lines, line), 1) << text << join(lines, "\n");
  }
}

TEST(Matrix, ExclusionsMayOverlap) {
  EXPECT_EQ(
      problems(head + "  p:\n"
                      "    matrix: {model.name: [lenet], variant: [ddp, zero1], workers: [1, 2]}\n"
                      "    exclude:\n"
                      "      - {variant: ddp}\n"
                      "      - {variant: ddp, workers: 2}\n"
                      "      - {variant: [ddp], workers: 1, model.name: lenet}\n"),
      Lines{});
}

TEST(Matrix, CellsShareTheirMistakes) {
  auto const lines = problems(head +
                              "  p: {base: {optimizer: {lr: fast}}, matrix: {model.name: [lenet], "
                              "variant: [ddp], run.seed: [1, 2, 3, 4]}}\n");
  EXPECT_EQ(lines, (Lines{"s.yaml:9:30: optimizer.lr: is \"fast\", must be a number"}));
}

TEST(Matrix, MistakesAreToldAllAtOnce) {
  auto const lines = problems(
      "schema: 1\n"
      "name: four\n"
      "base: {data: {dataset: mnist}, model: {name: lenett}}\n"
      "variants:\n"
      "  zero3: {strategy: {name: fsdp, shrd: full}}\n"
      "parts:\n"
      "  p: {matrix: {variant: [zero3, unknown], run.sed: [1, 2]}}\n",
      {"optimizer.lr=fast"});
  EXPECT_EQ(lines,
            (Lines{"s.yaml:3:46: model.name: is \"lenett\", must be one of lenet, vgg16 (did you "
                   "mean \"lenet\"?)",
                   "s.yaml:5:34: strategy.shrd: unknown key (did you mean \"shard\"?)",
                   "s.yaml:7:33: parts.p.matrix.variant: \"unknown\" is not among the variants",
                   "s.yaml:7:43: run.sed: unknown key (did you mean \"seed\"?)",
                   "-s optimizer.lr=fast: optimizer.lr: is \"fast\", must be a number"}));
}

TEST(Matrix, WhatTheFileMustHave) {
  EXPECT_EQ(problems("schema: 2\nname: x\nparts: {}\n"),
            (Lines{"s.yaml:1:1: parts: missing; a study has at least one part",
                   "s.yaml:1:9: schema: is \"2\", must be 1: another version's study"}));
  EXPECT_EQ(problems("[]").front(), "s.yaml:1:1: a map is expected");
  EXPECT_EQ(problems("").size(), 4U) << "no map, no schema, no name, no parts";
  EXPECT_EQ(problems("a: [1").size(), 1U) << "no YAML";
  EXPECT_EQ(problems(head + one_part, {"run.out=x"}).front(),
            "-s run.out=x: run.out: follows from the matrix; leave it out");
  EXPECT_EQ(problems(head + one_part, {"run.epoch=3"}).front(),
            "-s run.epoch=3: run.epoch: unknown key (did you mean \"epochs\"?)");
}

TEST(Matrix, AMatrixIsOfBoundedSize) {
  std::string list = "[0";
  for (int i = 1; i < 200; ++i) list += str(", ", i);
  auto const lines =
      problems(head + "  p: {matrix: {model.name: [lenet], variant: [ddp], run.seed: " + list +
               "], run.epochs: " + list + "]}}\n");
  EXPECT_EQ(lines, (Lines{"s.yaml:9:3: parts.p: has more than 20000 cells"}));
}

}  // namespace
}  // namespace stratagem
