#include "keys/suggestion.hpp"

#include <gtest/gtest.h>

#include "config/support.hpp"

namespace stratagem {
namespace {

using Names = std::vector<std::string>;

TEST(Suggestion, IgnoresCaseAndHyphens) {
  Names const models{"mlp", "lenet", "vgg16", "resnet50", "convnext_l"};
  EXPECT_EQ(suggest_value("LeNet", models), " (did you mean \"lenet\"?)");
  EXPECT_EQ(suggest_value("LeNet5", models), " (did you mean \"lenet\"?)");
  EXPECT_EQ(suggest_value("ConvNeXt-L", models), " (did you mean \"convnext_l\"?)");
  EXPECT_EQ(suggest_value("resnet", models), " (did you mean \"resnet50\"?)") << "a beginning";
  EXPECT_EQ(suggest_value("transformer", models), "");
  EXPECT_EQ(suggest_value("", models), "");
  EXPECT_EQ(suggest_value("-", models), "");
}

TEST(Suggestion, KnowsWhatOthersCallIt) {
  EXPECT_EQ(suggest_value("gpu", Names{"auto", "cpu", "cuda"}), " (did you mean \"cuda\"?)");
  Names const strategies{"serial", "ddp", "fsdp", "ps"};
  EXPECT_EQ(suggest_value("DDP", strategies), " (did you mean \"ddp\"?)");
  EXPECT_EQ(suggest_value("ZeRO-3", strategies), " (did you mean \"fsdp\" with shard: full?)");
  EXPECT_EQ(suggest_value("zero1", strategies), " (did you mean \"fsdp\" with shard: optimizer?)");
  EXPECT_EQ(suggest_value("gpu", strategies), "") << "a synonym of no name here";
}

TEST(Suggestion, OfKeysReachesAcrossSections) {
  Names const in_section{"input_size", "global_batch"};
  Names const paths{"data.input_size", "data.global_batch", "optimizer.lr"};
  EXPECT_EQ(suggest_key("learning_rate", in_section, paths), " (did you mean \"optimizer.lr\"?)");
  EXPECT_EQ(suggest_key("Global_Batch", in_section, paths), " (did you mean \"global_batch\"?)");
  EXPECT_EQ(suggest_key("colour", in_section, paths), "");
}

/// A synonym of a name that is gone would never be suggested.
TEST(Suggestion, SynonymsStandForNamesThatExist) {
  auto const told = [](std::string const& setting) {
    return join(test::problems(test::minimal, {setting}), "\n");
  };
  EXPECT_NE(told("run.device=GPU").find("did you mean \"cuda\""), std::string::npos);
  EXPECT_NE(told("strategy.name=zero3").find("\"fsdp\" with shard: full"), std::string::npos);
  EXPECT_NE(told("precision.compute=bfloat16").find("did you mean \"bf16\""), std::string::npos);
  EXPECT_NE(told("optimizer.learning_rate=1").find("did you mean \"optimizer.lr\""),
            std::string::npos);
  EXPECT_NE(told("data.batch_size=1").find("did you mean \"data.global_batch\""),
            std::string::npos);
}

}  // namespace
}  // namespace stratagem
