#include "config/parse.hpp"

#include <ostream>

#include <gtest/gtest.h>

#include "config/keys.hpp"
#include "config/support.hpp"

namespace stratagem {
namespace {

using test::minimal;
using test::parse;
using test::problems;
using Lines = std::vector<std::string>;

TEST(Parse, MinimalConfigurationHasTheStudysRecipe) {
  auto const config = parse(minimal);
  EXPECT_EQ(config.run.name, "lenet-ddp");
  EXPECT_EQ(config.run.out, "runs/lenet-ddp");
  for (auto const& [name, folder] : {std::pair{"../a b", "..-a b"}, {"..", "run"}, {"a/b", "a-b"}})
    EXPECT_EQ(parse(minimal, {str("run.name=", name)}).run.out, str("runs/", folder));
  EXPECT_EQ(config.run.epochs, 10);
  EXPECT_EQ(config.data.dataset, "mnist");
  EXPECT_EQ(config.data.root, "");
  EXPECT_EQ(config.data.global_batch, 128);
  EXPECT_EQ(config.optimizer.lr, 0.01);
  EXPECT_EQ(std::get<SgdConfig>(config.optimizer.rule).momentum, 0.9);
  EXPECT_EQ(std::get<DdpConfig>(config.strategy).bucket_mb, 25);
}

TEST(Parse, ReadsEveryTypeOfValue) {
  auto const config = parse(
      "schema: 1\n"
      "run: {name: \"a: b\", seed: 9223372036854775807, device: cpu, max_time_s: 1e3}\n"
      "expect: {ranks: 4, version: \"0.1.0\"}\n"
      "data: {dataset: cifar10, root: '/data', augment: standard}\n"
      "model: {name: resnet50, dropout: false, memory_format: channels_last}\n"
      "precision: {compute: fp16}\n"
      "optimizer:\n"
      "  name: sgd\n"
      "  lr: .5\n"
      "  nesterov: true\n"
      "  lr_scaling: sqrt\n"
      "  schedule: step\n"
      "strategy: {name: serial, emulate_ranks: 3, micro_batches: 2}\n"
      "comm: {backend: nccl}\n"
      "trace:\n");
  EXPECT_EQ(config.run.name, "a: b");
  EXPECT_EQ(config.run.seed, 9223372036854775807U);
  EXPECT_EQ(config.run.device, DeviceChoice::cpu);
  EXPECT_EQ(config.run.max_time_s, 1000);
  EXPECT_EQ(config.expect,
            (std::map<std::string, std::string>{{"ranks", "4"}, {"version", "0.1.0"}}));
  EXPECT_EQ(config.data.augment, Augmentation::standard);
  EXPECT_FALSE(config.model.dropout);
  EXPECT_EQ(config.model.memory_format, MemoryFormat::channels_last);
  EXPECT_EQ(config.precision.compute, Precision::fp16);
  EXPECT_EQ(config.precision.loss_scale, LossScale::dynamic);
  EXPECT_EQ(config.optimizer.lr, 0.5);
  EXPECT_TRUE(std::get<SgdConfig>(config.optimizer.rule).nesterov);
  EXPECT_EQ(config.optimizer.lr_scaling, LrScaling::sqrt);
  EXPECT_EQ(config.optimizer.schedule, ScheduleKind::step);
  EXPECT_EQ(std::get<SerialConfig>(config.strategy).emulate_ranks, 3);
  EXPECT_EQ(std::get<SerialConfig>(config.strategy).micro_batches, 2);
  EXPECT_EQ(config.comm.backend, CommBackend::nccl);
}

/// A bad line after the three of the minimal configuration, or a bad override of it, and what is
/// said about it.
struct BadLine {
  std::string text;
  std::string problem;
  bool is_override = false;
};
void PrintTo(BadLine const& bad, std::ostream* out) {
  *out << bad.text;
}

std::vector<BadLine> overrides(std::vector<BadLine> lines) {
  for (auto& line : lines) line.is_override = true;
  return lines;
}

class Parse : public testing::TestWithParam<BadLine> {};

TEST_P(Parse, RefusesSayingWhereAndWhy) {
  auto const& [text, problem, is_override] = GetParam();
  EXPECT_EQ(is_override ? problems(minimal, {text}) : problems(minimal + text), Lines{problem});
}

/// The words are yaml-cpp's; 0.8 also names the anchor.
TEST(Parse, SaysWhereAnAnchorIsMissing) {
  auto const found = problems(str(minimal, "run: {name: *a}"));
  std::string const problem = "c.yaml:4:13: not YAML: the referenced anchor is not defined";
  EXPECT_TRUE(found == Lines{problem} || found == Lines{problem + ": a"}) << join(found, "\n");
}

INSTANTIATE_TEST_SUITE_P(
    Line, Parse,
    testing::Values(
        BadLine{"optimizer: {lrr: 1}",
                "c.yaml:4:13: optimizer.lrr: unknown key (did you mean \"lr\"?)"},
        BadLine{"run: {input_size: 64}",
                "c.yaml:4:7: run.input_size: unknown key (did you mean \"data.input_size\"?)"},
        BadLine{"lr: 1", "c.yaml:4:1: lr: unknown key (did you mean \"optimizer.lr\"?)"},
        BadLine{"run: {zzzzzz: 1}", "c.yaml:4:7: run.zzzzzz: unknown key"},
        BadLine{"run: {run.seed: 1}",
                "c.yaml:4:7: run.\"run.seed\": a path, not a key; write run: {seed: ...}"},
        BadLine{"run.seed: 1",
                "c.yaml:4:1: \"run.seed\": a path, not a key; write run: {seed: ...}"},
        BadLine{"\"x.y\": {a: 1}", "c.yaml:4:1: \"x.y\": unknown section"},
        BadLine{"\"\": 1", "c.yaml:4:1: \"\": unknown key"},
        BadLine{"model: {name: \"\xff\"}",
                "c.yaml:4:16: \\xff in the file, which must be UTF-8 text"},
        BadLine{"run: {name: \"\\\x7fq\"}",
                "c.yaml:4:15: \\x7f in the file, which must be UTF-8 text"},
        BadLine{"run: {name: \"\\q\"}", "c.yaml:4:16: not YAML: unknown escape character: q"},
        BadLine{"optimiser: {lr: 1, b: 2}",
                "c.yaml:4:1: optimiser: unknown section (did you mean \"optimizer\"?)"},
        BadLine{"checkpoints: {keep: 2}",
                "c.yaml:4:1: checkpoints: unknown section (did you mean \"checkpoint\"?)"},
        BadLine{
            "trace: 5",
            "c.yaml:4:1: trace: a section, not a key; its keys are spans_every, device_sample_hz"},
        BadLine{"expect: {gpu: 5}", "c.yaml:4:10: expect.gpu: unknown key"},
        BadLine{"schema: 2", "c.yaml:4:9: schema: is \"2\", must be 1"},
        BadLine{"schema: {a: 1}", "c.yaml:4:1: schema: a map; one value is expected"},
        BadLine{"run:\n  seed: 1\n  seed: 2",
                "c.yaml:6:3: run.seed: duplicate key, first given in line 5"},
        BadLine{"model: {}", "c.yaml:4:1: model: duplicate key, first given in line 2"},
        BadLine{"run: {seed: one}", "c.yaml:4:13: run.seed: is \"one\", must be an integer"},
        BadLine{"run: {seed: 1.5}", "c.yaml:4:13: run.seed: is \"1.5\", must be an integer"},
        BadLine{"run: {seed: \"1\"}",
                "c.yaml:4:13: run.seed: is \"1\", must be an integer, without quotes"},
        BadLine{"run: {seed: 012}",
                "c.yaml:4:13: run.seed: is \"012\", must be an integer without leading zeros"},
        BadLine{"run: {seed: 9223372036854775808}",
                "c.yaml:4:13: run.seed: is \"9223372036854775808\", must be an integer"},
        BadLine{"run: {ranks: 2147483648}",
                "c.yaml:4:14: run.ranks: is 2147483648, must be <= 2147483647"},
        BadLine{"run: {seed: }", "c.yaml:4:7: run.seed: has no value (\"\" is an empty text)"},
        BadLine{"run: {name: ~}", "c.yaml:4:7: run.name: has no value (\"\" is an empty text)"},
        BadLine{"run: {seed: [1]}", "c.yaml:4:13: run.seed: a list; one value is expected"},
        BadLine{"run: {seed: {a: {b: c}}}", "c.yaml:4:13: run.seed: a map; one value is expected"},
        BadLine{"run: [seed, 1]", "c.yaml:4:6: run: a list; one value is expected"},
        BadLine{"optimizer: {lr: .nan}",
                "c.yaml:4:17: optimizer.lr: is \".nan\", must be a number"},
        BadLine{"optimizer: {lr: -1}", "c.yaml:4:17: optimizer.lr: is -1, must be >= 0"},
        BadLine{"optimizer: {momentum: 1}",
                "c.yaml:4:23: optimizer.momentum: is 1, must be in [0, 1)"},
        BadLine{"optimizer: {gamma: 0}", "c.yaml:4:20: optimizer.gamma: is 0, must be in (0, 1]"},
        BadLine{"optimizer: {nesterov: yes}",
                "c.yaml:4:23: optimizer.nesterov: is \"yes\", must be true or false"},
        BadLine{"optimizer: {schedule: cosin}",
                "c.yaml:4:23: optimizer.schedule: is \"cosin\", must be one of constant, cosine, "
                "step, linear, wsd (did you mean \"cosine\"?)"},
        BadLine{"run: {epochs: -1}", "c.yaml:4:15: run.epochs: is -1, must be >= 0"},
        BadLine{"comm: {timeout_s: 0}", "c.yaml:4:19: comm.timeout_s: is 0, must be >= 1"},
        BadLine{"run: {out: \"${NOWHERE}/x\"}",
                "c.yaml:4:12: run.out: undefined variable ${NOWHERE}; export NOWHERE=..."},
        BadLine{
            "run: {out: \"${x\"}",
            "c.yaml:4:12: run.out: \"${x\" is not a variable ${NAME}; write $${ for a literal ${"},
        BadLine{"run: {out: \"a\\0b\"}", "c.yaml:4:12: run.out: is not UTF-8 text without NUL"},
        BadLine{"run: {name: &a x}", "c.yaml:4:13: run.name: an anchor; leave it out"},
        BadLine{"run: {seed: !!int 3}", "c.yaml:4:13: run.seed: a tag; leave it out"},
        BadLine{"? {a: b}\n: c", "c.yaml:4:3: not YAML: a key must be a word"},
        BadLine{"run: {name: 'x", "c.yaml:4:15: not YAML: illegal EOF in scalar"},
        BadLine{"---\na: 1", "c.yaml:4:1: a second document; there must be one"},
        BadLine{"optimizer: {nesterov: true, momentum: 0}",
                "c.yaml:4:23: optimizer.nesterov: is true, which needs optimizer.momentum > 0"},
        BadLine{"run: {evaluate_every: 1.0}",
                "c.yaml:4:23: run.evaluate_every: is \"1.0\", must be an integer"}));

INSTANTIATE_TEST_SUITE_P(
    Override, Parse,
    testing::ValuesIn(overrides(
        {BadLine{"optimizer.lr", "-s optimizer.lr: is not section.key=value"},
         BadLine{"optimizer.lr=x", "-s optimizer.lr=x: optimizer.lr: is \"x\", must be a number"},
         BadLine{"optimizer.lrr=1",
                 "-s optimizer.lrr=1: optimizer.lrr: unknown key (did you mean \"lr\"?)"},
         BadLine{"optimiser.lr=1",
                 "-s optimiser.lr=1: optimiser.lr: unknown section (did you mean "
                 "\"optimizer\"?)"},
         BadLine{"data=mnist",
                 "-s data=mnist: data: a section, not a key; its keys are dataset, path, mean, "
                 "stddev, flip, decode_threads, root, global_batch, batch_per_worker, input_size, "
                 "seq_len, "
                 "augment, subset, holdout"},
         BadLine{"model.name=lennet",
                 "-s model.name=lennet: model.name: is \"lennet\", must be one of lenet, vgg16, "
                 "resnet50 (did you mean \"lenet\"?)"},
         BadLine{"data.dataset=cifar100",
                 "-s data.dataset=cifar100: data.dataset: is \"cifar100\", must be one of mnist, "
                 "cifar10, synthetic-digits (did you mean \"cifar10\"?)"},
         BadLine{"strategy.emulate_ranks=2",
                 "-s strategy.emulate_ranks=2: strategy.emulate_ranks: key of strategy serial, not "
                 "of ddp"},
         BadLine{"strategy.micro_batches=0",
                 "-s strategy.micro_batches=0: strategy.micro_batches: is 0, must be >= 1"},
         BadLine{"strategy.bucket_mb=0",
                 "-s strategy.bucket_mb=0: strategy.bucket_mb: is 0, must be > 0"},
         BadLine{"model.num_classes=1",
                 "-s model.num_classes=1: model.num_classes: is 1, must be in [2, 1048576]"},
         BadLine{"model.head=fresh",
                 "-s model.head=fresh: model.head: is fresh, which needs model.weights"},
         BadLine{"model.frozen=true",
                 "-s model.frozen=true: model.frozen: is true, which needs model.file"},
         BadLine{"data.global_batch=0",
                 "-s data.global_batch=0: data.global_batch: is 0 and so is "
                 "data.batch_per_worker; one must be >= 1"},
         BadLine{"run.nam=a\nb\x1b[2J",
                 "-s run.nam=a\\x0ab\\x1b[2J: run.nam: unknown key (did you mean \"name\"?)"},
         BadLine{"a.b.c=1", "-s a.b.c=1: a.\"b.c\": unknown section (did you mean \"advanced\"?)"},
         BadLine{"=1", "-s =1: \"\": unknown key"}})),
    [](auto const& info) { return str("n", info.index); });

TEST(Parse, ReportsEveryProblemInTheOrderOfTheirPlaces) {
  EXPECT_EQ(
      problems("optimizer: {lr: fast, lrr: 1}\n"
               "data: {global_batch: -4, global_batch: 8}\n"
               "model:\n"
               "  name: lennet\n"
               "  wieghts: ${HOME}\n"
               "  num_classes: ${MANY}\n",
               {"comm.backend=mpii", "runn.seed=3"}),
      (Lines{
          "c.yaml:1:1: strategy.name: missing; must be one of serial | ddp | fsdp | local | gossip "
          "| "
          "fedavg | ps",
          "c.yaml:1:17: optimizer.lr: is \"fast\", must be a number",
          "c.yaml:1:23: optimizer.lrr: unknown key (did you mean \"lr\"?)",
          "c.yaml:2:1: data.dataset: missing; must be one of mnist | cifar10 | synthetic-digits, "
          "or give data.path",
          "c.yaml:2:26: data.global_batch: duplicate key, first given in line 2",
          "c.yaml:4:9: model.name: is \"lennet\", must be one of lenet, vgg16, resnet50 (did "
          "you mean \"lenet\"?)",
          "c.yaml:5:3: model.wieghts: unknown key (did you mean \"weights\"?)",
          "c.yaml:6:16: model.num_classes: undefined variable ${MANY}; export MANY=...",
          "-s comm.backend=mpii: comm.backend: is \"mpii\", must be one of auto, mpi, nccl "
          "(did you mean \"mpi\"?)",
          "-s runn.seed=3: runn.seed: unknown section (did you mean \"run\"?)",
      }));
}

TEST(Parse, AnEmptyFileLacksTheRequiredKeys) {
  for (std::string const text : {"", "# nothing\n", "---\n", "~"})
    EXPECT_EQ(problems(text).size(), 3U) << text;
  EXPECT_EQ(problems("[1, 2]").front(), "c.yaml:1:1: the file must be a map of sections");
  EXPECT_EQ(problems("word").front(), "c.yaml:1:1: the file must be a map of sections");
}

TEST(Parse, ARequiredKeyWithABadValueIsNotMissing) {
  EXPECT_EQ(problems("data: {dataset: [mnist]}\nmodel: {name: }\nstrategy: {name: {a: b}}\n"),
            (Lines{"c.yaml:1:17: data.dataset: a list; one value is expected",
                   "c.yaml:2:9: model.name: has no value (\"\" is an empty text)",
                   "c.yaml:3:18: strategy.name: a map; one value is expected"}));
}

TEST(Parse, SeveralNumbersAreAListOrAText) {
  for (std::string const given :
       {"[0.5, 0.25, 1]", "0.5 0.25 1", "\"0.5, 0.25,1\"", "'0.5 0.25 1'"}) {
    auto const config =
        parse("data: {path: own, mean: " + given +
              ", stddev: [1, 1, 1]}\nmodel: {name: lenet}\nstrategy: {name: ddp}\n");
    EXPECT_EQ(config.data.mean, (std::vector{0.5, 0.25, 1.0})) << given;
    EXPECT_EQ(config.data.stddev, (std::vector{1.0, 1.0, 1.0}));
  }
  EXPECT_EQ(problems("data: {path: own, mean: [0.5, 2], stddev: [[1], 1]}\n"
                     "model: {name: [lenet, mlp]}\nstrategy: {name: ddp}\n"),
            (Lines{"c.yaml:1:25: data.mean: has \"2\", must be numbers in [0, 1]",
                   "c.yaml:1:43: data.stddev: a list; one value is expected",
                   "c.yaml:2:15: model.name: a list; one value is expected"}));
}

TEST(Parse, OverridesBeatTheFileAndTheLastOneCounts) {
  auto const config = parse(minimal + "optimizer: {lr: 0.5}\n",
                            {"optimizer.lr=0.1", "run.name=a=b \"c\"", "optimizer.lr=0.2"});
  EXPECT_EQ(config.optimizer.lr, 0.2);
  EXPECT_EQ(config.run.name, "a=b \"c\"");
}

TEST(Parse, AnOverrideReplacesTheStrategyWithTheKeysOnlyItHas) {
  std::string const file =
      "data: {dataset: mnist}\n"
      "model: {name: lenet}\n"
      "strategy: {name: ddp, bucket_mb: 1, micro_batches: 3}\n";
  auto const config = parse(file, {"strategy.name=serial", "strategy.emulate_ranks=2"});
  EXPECT_EQ(std::get<SerialConfig>(config.strategy).emulate_ranks, 2);
  EXPECT_EQ(std::get<SerialConfig>(config.strategy).micro_batches, 3);
  EXPECT_EQ(config.run.name, "lenet-serial");
  EXPECT_EQ(
      problems(file, {"strategy.name=serial", "strategy.bucket_mb=2"}),
      Lines{"-s strategy.bucket_mb=2: strategy.bucket_mb: key of strategy ddp, not of serial"});
}

TEST(Parse, AnOptimizerHasItsOwnKeysAndDefaults) {
  auto const unknown = problems(minimal + "optimizer: {name: newton, momentum: 0.5}\n");
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(unknown[0].find("c.yaml:4:19: optimizer.name: is \"newton\", must be "), 0U)
      << unknown[0];
  for (auto const& optimizer : all_optimizers()) {
    auto const name = std::string(name_of(optimizer));
    auto const chosen = parse(minimal, {"optimizer.name=" + name}).optimizer;
    EXPECT_EQ(name_of(chosen), name);
    EXPECT_EQ(chosen.lr, optimizer.lr);
    EXPECT_EQ(chosen.weight_decay, optimizer.weight_decay);
    for (auto const& key : describe_keys(test::names())) {
      if (key.belongs_to({{"optimizer", name}})) continue;
      auto const owner = key.owners.front();
      auto const entry = str(name_in_section(key.path), ": ", key.default_value);
      EXPECT_EQ(problems(minimal + str("optimizer: {name: ", name, ", ", entry, "}\n")),
                Lines{str("c.yaml:4:", 21 + name.size(), ": ", key.path, ": key of optimizer ",
                          join(key.owners, " and "), ", not of ", name)});
      auto const other = minimal + str("optimizer: {name: ", owner, ", ", entry, "}\n");
      EXPECT_EQ(problems(other), Lines{});
      EXPECT_EQ(name_of(parse(other, {"optimizer.name=" + name}).optimizer), name)
          << "an override takes away what only the file's optimizer has";
    }
  }
}

TEST(Parse, UnderAnUnknownStrategyTheKeysOfAnyAreKnown) {
  EXPECT_EQ(problems("data: {dataset: mnist}\n"
                     "model: {name: lenet}\n"
                     "strategy: {name: dpp, bucket_mb: 1, emulate_ranks: 2, buckets: 1}\n"),
            (Lines{"c.yaml:3:18: strategy.name: is \"dpp\", must be one of serial, ddp, fsdp, "
                   "local, gossip, fedavg, ps (did "
                   "you mean \"ddp\"?)",
                   "c.yaml:3:55: strategy.buckets: unknown key (did you mean \"bucket_mb\"?)"}));
}

TEST(Parse, OneOfTheTwoBatchSizesCounts) {
  auto const per_worker = parse(minimal, {"data.batch_per_worker=16"});
  EXPECT_EQ(per_worker.data.global_batch, 0);
  EXPECT_EQ(per_worker.data.global_batch_for(3), 48);
  std::string const both =
      "data: {dataset: mnist, batch_per_worker: 16, global_batch: 64}\n"
      "model: {name: lenet}\n"
      "strategy: {name: ddp}\n";
  EXPECT_EQ(problems(both),
            Lines{"c.yaml:1:42: data.batch_per_worker: is 16 while data.global_batch is 64 "
                  "(c.yaml:1:60); leave one out or set it to 0"});
  EXPECT_EQ(parse(both, {"data.global_batch=0"}).data.batch_per_worker, 16);
  EXPECT_EQ(parse(both, {"data.batch_per_worker=0"}).data.global_batch, 64);
}

TEST(Parse, Bf16ScalesTheLossOnlyWhereThatIsGiven) {
  EXPECT_EQ(parse(minimal, {"precision.compute=bf16"}).precision.loss_scale, LossScale::none);
  EXPECT_EQ(parse(minimal, {"precision.compute=bf16", "precision.loss_scale=dynamic"})
                .precision.loss_scale,
            LossScale::dynamic);
  EXPECT_EQ(parse(minimal, {"precision.compute=fp16"}).precision.loss_scale, LossScale::dynamic);
}

TEST(Parse, ExpandsVariablesOfTheValuesThatCount) {
  auto const file = minimal + "run: {out: \"${BASE}/x\", ranks: \"${RANKS}\"}\n";
  auto const config = parse(file, {}, {{"BASE", "/${RANKS}"}, {"RANKS", "4"}});
  EXPECT_EQ(config.run.out, "/${RANKS}/x");
  EXPECT_EQ(config.run.ranks, 4);
  EXPECT_EQ(parse(file, {"run.out=a", "run.ranks=2"}).run.out, "a");
}

TEST(Parse, TheDataFolderIsTakenFromTheEnvironmentUnlessGiven) {
  std::map<std::string, std::string> const variables{{"STRATAGEM_DATA", "/data"}};
  EXPECT_EQ(parse(minimal, {}, variables).data.root, "/data");
  EXPECT_EQ(parse(minimal, {"data.root=/other"}, variables).data.root, "/other");
  EXPECT_EQ(parse(minimal, {"data.root="}, variables).data.root, "");
  EXPECT_EQ(problems(minimal, {"data.root=${STRATAGEM_DATA}/a"}).front(),
            "-s data.root=${STRATAGEM_DATA}/a: data.root: undefined variable ${STRATAGEM_DATA}; "
            "export STRATAGEM_DATA=...");
}

}  // namespace
}  // namespace stratagem
