#include "config/keys.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "config/support.hpp"

namespace stratagem {
namespace {

KeyDescription const& row(std::vector<KeyDescription> const& rows, std::string const& path) {
  auto const found = std::ranges::find(rows, path, &KeyDescription::path);
  if (found == rows.end()) throw std::out_of_range(path);
  return *found;
}

TEST(Keys, AreDescribedOnceAndSectionBySection) {
  auto const rows = describe_keys(test::names());
  std::set<std::string> paths, closed_sections;
  std::string open;
  for (auto const& key : rows) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.meaning.empty() || key.type.empty() || key.path.empty()) << key.path;
    auto const section = section_of(key.path);
    if (section != open) closed_sections.insert(open);
    open = section;
    EXPECT_FALSE(closed_sections.contains(section)) << key.path;
  }
}

TEST(Keys, HaveTypeDefaultRangeAndStrategies) {
  auto const rows = describe_keys(test::names());
  EXPECT_EQ(row(rows, "data.dataset").default_value, "required");
  EXPECT_EQ(row(rows, "data.dataset").type, "mnist | cifar10 | synthetic-digits");
  EXPECT_EQ(row(rows, "strategy.name").type, "serial | ddp | fsdp | local | gossip | fedavg | ps");
  EXPECT_EQ(row(rows, "optimizer.lr").default_value, "0.01");
  EXPECT_EQ(row(rows, "optimizer.momentum").range, "in [0, 1)");
  EXPECT_EQ(row(rows, "run.name").default_value, "\"\"");
  EXPECT_EQ(row(rows, "strategy.bucket_mb").owners, std::vector<std::string>{"ddp"});
  EXPECT_EQ(row(rows, "advanced.gate").owners, std::vector<std::string>{"ps"});
  EXPECT_TRUE(row(rows, "strategy.micro_batches").owners.empty());
  EXPECT_TRUE(row(rows, "strategy.micro_batches").belongs_to({{"strategy", "ddp"}}));
  EXPECT_TRUE(row(rows, "strategy.bucket_mb").belongs_to({{"strategy", "ddp"}}));
  EXPECT_FALSE(row(rows, "strategy.bucket_mb").belongs_to({{"strategy", "serial"}}));
  EXPECT_TRUE(row(rows, "strategy.bucket_mb").belongs_to({{"optimizer", "sgd"}}));
}

/// The names of a choice stand in the order of its enumerators.
TEST(Keys, ChoicesNameTheirEnumerators) {
  auto const with = [](std::string const& setting) {
    return test::parse(test::minimal, {setting});
  };
  EXPECT_EQ(with("run.device=auto").run.device, DeviceChoice::automatic);
  EXPECT_EQ(with("run.device=cuda").run.device, DeviceChoice::cuda);
  EXPECT_EQ(with("data.augment=none").data.augment, Augmentation::none);
  EXPECT_EQ(with("model.head=strict").model.head, HeadWeights::strict);
  EXPECT_EQ(with("model.memory_format=auto").model.memory_format, MemoryFormat::automatic);
  EXPECT_EQ(with("model.memory_format=contiguous").model.memory_format, MemoryFormat::contiguous);
  EXPECT_TRUE(with("model.fused=auto").model.fused);
  EXPECT_FALSE(with("model.fused=off").model.fused);
  auto const of_file = test::parse(
      "data: {dataset: mnist}\nmodel: {file: a.pt2, frozen: true}\nstrategy: {name: ddp}\n");
  EXPECT_TRUE(of_file.model.frozen);
  EXPECT_FALSE(with("model.frozen=false").model.frozen);
  EXPECT_EQ(with("model.recompute=none").model.recompute.every, 0);
  EXPECT_EQ(with("model.recompute=all").model.recompute.every, 1);
  EXPECT_EQ(with("model.recompute=every_12").model.recompute.every, 12);
  EXPECT_EQ(with("precision.compute=fp32").precision.compute, Precision::fp32);
  EXPECT_EQ(with("precision.compute=bf16").precision.compute, Precision::bf16);
  EXPECT_EQ(with("precision.compute=fp64").precision.compute, Precision::fp64);
  EXPECT_EQ(with("precision.loss_scale=none").precision.loss_scale, LossScale::none);
  EXPECT_EQ(with("optimizer.reduction=mean").optimizer.reduction, Reduction::mean);
  EXPECT_EQ(with("optimizer.reduction=sum").optimizer.reduction, Reduction::sum);
  EXPECT_EQ(with("optimizer.lr_scaling=linear").optimizer.lr_scaling, LrScaling::linear);
  EXPECT_EQ(with("optimizer.schedule=constant").optimizer.schedule, ScheduleKind::constant);
  EXPECT_EQ(with("optimizer.schedule=cosine").optimizer.schedule, ScheduleKind::cosine);
  EXPECT_EQ(with("comm.backend=auto").comm.backend, CommBackend::automatic);
  EXPECT_EQ(with("comm.backend=mpi").comm.backend, CommBackend::mpi);
}

TEST(Keys, RecomputationIsNoneAllOrEverySoManyBlocks) {
  for (std::string const wrong : {"some", "every", "every_", "every_0", "every_1", "every_02",
                                  "every_-2", "every_2.5", "every_4294967298", "ALL", "\"\""}) {
    auto const lines = test::problems(test::minimal, {"model.recompute=" + wrong});
    ASSERT_EQ(lines.size(), 1U) << wrong;
    EXPECT_NE(lines[0].find("must be none, all, or every_2"), std::string::npos) << lines[0];
  }
}

}  // namespace
}  // namespace stratagem
