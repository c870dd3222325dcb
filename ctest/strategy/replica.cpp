#include "strategy/pass/replica.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "conformance/training.hpp"

namespace stratagem {
namespace {

TEST(Replica, BlocksRunWithViewsOfTheFlatBuffer) {
  auto const model = test::test_model("tiny_odd");
  Replica const replica(model, Precision::fp32, {}, 1);
  for (int block = 0; block < replica.layout().blocks(); ++block)
    for (auto const& parameter : replica.parameters(block)) {
      EXPECT_TRUE(parameter.is_leaf() && parameter.requires_grad());
      EXPECT_TRUE(parameter.is_alias_of(replica.flat()));
    }
}

TEST(Replica, TheRoundedCopyFollowsTheFlatBufferButForNorms) {
  auto const model = test::test_model("tiny_residual");
  Replica replica(model, Precision::bf16, {}, 1);
  replica.flat().add_(0.3);
  replica.refresh({0, replica.layout().size()});
  int rounded = 0, kept = 0;
  for (int block = 0; block < replica.layout().blocks(); ++block) {
    auto const masters = views_of(replica.flat(), replica.layout(), block);
    auto const entries = replica.layout().entries(block);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      auto const& parameter = replica.parameters(block)[i];
      auto const type = entries[i].spec.keep_fp32 ? at::kFloat : at::kBFloat16;
      ++(entries[i].spec.keep_fp32 ? kept : rounded);
      EXPECT_EQ(parameter.scalar_type(), type) << entries[i].spec.name;
      EXPECT_TRUE(parameter.detach().equal(masters[i].to(type))) << entries[i].spec.name;
    }
  }
  EXPECT_GT(rounded, 0);
  EXPECT_GT(kept, 0);
}

TEST(Replica, NamesWholeTensorsAndLoadsThem) {
  auto const model = test::test_model("tiny_odd");
  Replica const source(model, Precision::fp32, {}, 1);
  Replica target(model, Precision::bf16, {}, 2);
  auto const named = source.named(source.flat(), all_tensors);
  std::map<std::string, at::Tensor> const tensors(named.begin(), named.end());
  EXPECT_EQ(tensors.size(), named.size()) << "a name appears once";
  EXPECT_EQ(tensors.at("wide.weight").size(0), 19) << "parts are joined";
  ASSERT_FALSE(target.flat().equal(source.flat()));
  target.load(tensors);
  EXPECT_TRUE(target.flat().equal(source.flat()));
  EXPECT_TRUE(
      target.parameters(0)[0].detach().equal(source.parameters(0)[0].detach().to(at::kBFloat16)));
}

TEST(Replica, BuffersAreAveragedInRankOrder) {
  auto const model = test::test_model("tiny_residual");
  std::vector<Buffers> workers;
  for (float const value : {1e8F, 3.0F, -1e8F}) {
    auto& buffers = workers.emplace_back(make_buffers(model, {}, Precision::fp32));
    for (auto& of_block : buffers)
      for (auto& buffer : of_block) buffer.fill_(value);
  }
  auto const means = average(workers);
  ASSERT_FALSE(means[0].empty());
  for (auto const& of_block : means)
    for (auto const& mean : of_block) {
      // 1e8 + 3 is 1e8 in fp32; a counter takes the first worker's value.
      auto const expected = mean.is_floating_point() ? 0.0 : 1e8;
      EXPECT_TRUE(mean.eq(expected).all().item<bool>());
    }
  EXPECT_EQ(workers[0][0][0].flatten()[0].item<float>(), 1e8F) << "the workers' stay";
}

}  // namespace
}  // namespace stratagem
