#include "strategy/local/local_plan.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/state/model_layout.hpp"
#include "support/decided.hpp"

namespace stratagem::test {
namespace {

StrategyPlan plan(LocalConfig const& local, int ranks, OptimizerConfig const& optimizer = {},
                  PrecisionConfig const& precision = {}) {
  return plan_strategy(local, test_model("lenet"), optimizer, precision, ranks);
}

std::string refusal(LocalConfig const& local, int ranks, OptimizerConfig const& optimizer = {},
                    PrecisionConfig const& precision = {}) {
  try {
    static_cast<void>(plan(local, ranks, optimizer, precision));
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "not refused";
}

TEST(LocalPlan, DealsWorkersToRanks) {
  EXPECT_EQ(plan({}, 4).shares.workers, 4);
  auto const shared = plan({.workers = 12}, 4);
  EXPECT_EQ(shared.shares.workers, 12);
  EXPECT_EQ(shared.placement.workers(), 4);
  EXPECT_EQ(decided<LocalPlan>(shared).workers_of_rank(), 3);
  EXPECT_NE(refusal({.workers = 6}, 4).find("a multiple of 4"), std::string::npos);
  EXPECT_NE(refusal({.workers = 2}, 4).find("2 workers on 4 ranks"), std::string::npos);
}

TEST(LocalPlan, RefusesWhatGoesByTheGradientsOfAll) {
  EXPECT_NE(refusal({}, 2, {.clip_norm = 1}).find("optimizer.clip_norm"), std::string::npos);
  EXPECT_NE(refusal({}, 2, {.reduction = Reduction::sum}).find("reduction: sum"),
            std::string::npos);
  EXPECT_NE(refusal({}, 2, {}, scaled_bf16).find("precision.loss_scale"), std::string::npos);
}

TEST(LocalPlan, TheOuterStepNeedsMeansOfParameters) {
  EXPECT_NE(refusal({.outer_lr = 0.7}, 1).find("one worker"), std::string::npos);
  EXPECT_NE(refusal({.inner_steps = 1, .outer_momentum = 0.9}, 2).find("inner_steps: 1"),
            std::string::npos);
  auto const plain = plan({}, 2), outer = plan({.outer_lr = 0.7, .outer_momentum = 0.9}, 2);
  using gpu::MemoryCategory;
  auto const layout = static_cast<std::int64_t>(make_layout(test_model("lenet")).size());
  EXPECT_EQ(outer.memory[MemoryCategory::optimizer] - plain.memory[MemoryCategory::optimizer],
            2 * 4 * layout);
  EXPECT_EQ(outer.numbers.choices.at("strategy.outer_lr"), "0.7");
  EXPECT_NE(outer.hash(), plain.hash());
  EXPECT_EQ(outer.saved.copies, plain.saved.copies + 1);
}

/// Blocks of one vector each.
ParameterLayout layout_of(std::vector<std::int64_t> const& sizes) {
  std::vector<std::vector<ParameterSpec>> blocks;
  for (auto const size : sizes) {
    blocks.emplace_back();
    if (size > 0) blocks.back().push_back({"block" + std::to_string(blocks.size()), {size}, {}});
  }
  return {blocks, false};
}

TEST(LocalPlan, FragmentsAreWholeBlocksThatCoverTheModelInOrder) {
  for (auto const* model : {"lenet", "tiny_residual", "tiny_odd", "tiny_gpt"}) {
    auto const layout = make_layout(test_model(model));
    std::set<std::int64_t> ends;
    for (int block = 0; block < layout.blocks(); ++block) ends.insert(layout.range(block).end);
    ASSERT_GT(Fragments::most(layout), 1);
    for (int count = 1; count <= Fragments::most(layout); ++count) {
      Fragments const fragments(layout, count, 100, 0);
      ASSERT_EQ(fragments.ranges().size(), static_cast<std::size_t>(count));
      std::int64_t covered = 0;
      for (auto const& range : fragments.ranges()) {
        EXPECT_EQ(range.begin, covered) << model << ", " << count;
        EXPECT_GT(range.size(), 0) << model << ", " << count;
        EXPECT_LE(range.size(), fragments.largest());
        EXPECT_TRUE(ends.contains(range.end));
        covered = range.end;
      }
      EXPECT_EQ(covered, layout.size());
    }
  }
}

TEST(LocalPlan, FragmentsHaveAboutEquallyManyElements) {
  auto const sizes = [](std::vector<std::int64_t> const& blocks, int count) {
    Fragments const fragments(layout_of(blocks), count, 100, 0);
    std::vector<std::int64_t> sizes;
    for (auto const& range : fragments.ranges()) sizes.push_back(range.size() / 32);
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(sizes({32, 32, 32, 32, 32, 32}, 3), (Sizes{2, 2, 2}));
  EXPECT_EQ(sizes({32, 32, 32, 320}, 2), (Sizes{3, 10}));
  EXPECT_EQ(sizes({320, 32, 32, 32}, 2), (Sizes{10, 3}));
  EXPECT_EQ(sizes({320, 32, 32, 32}, 3), (Sizes{10, 1, 2}));
  EXPECT_EQ(sizes({32, 32, 320, 32, 32}, 3), (Sizes{2, 10, 2}));
  EXPECT_EQ(sizes({320, 0, 0, 32, 0}, 2), (Sizes{10, 1})) << "not of nothing";
  EXPECT_EQ(Fragments::most(layout_of({320, 0, 0, 32, 0})), 2);
}

/// After 2, 5 and 8 of 8 steps, in turn; each is taken two steps later at most.
TEST(LocalPlan, FragmentsAreSentInTurn) {
  auto const layout = layout_of({32, 32, 32});
  auto const number = [](Fragments const& fragments, std::optional<FlatRange> const& range) {
    if (!range) return -1;
    auto const place = std::ranges::find(fragments.ranges(), *range);
    return static_cast<int>(place - fragments.ranges().begin());
  };
  for (int const delay : {0, 1}) {
    Fragments const fragments(layout, 3, 8, delay);
    EXPECT_EQ(fragments.largest_gap(), 3);
    std::vector<int> sent, taken, under_way;
    for (std::int64_t made = -3; made <= 17; ++made) {
      sent.push_back(number(fragments, fragments.sent_after(made)));
      taken.push_back(number(fragments, fragments.taken_after(made)));
      under_way.push_back(number(fragments, fragments.under_way_after(made)));
    }
    using Numbers = std::vector<int>;
    Numbers const expected{-1, -1, -1, -1, -1, 0, -1, -1, 1, -1, -1,
                           2,  -1, 0,  -1, -1, 1, -1, -1, 2, -1};
    Numbers later(expected.size(), -1);
    std::copy(expected.begin(), expected.end() - delay, later.begin() + delay);
    EXPECT_EQ(sent, expected);
    EXPECT_EQ(taken, later);
    EXPECT_EQ(under_way, delay == 0 ? Numbers(expected.size(), -1) : expected);
  }
  EXPECT_EQ(Fragments(layout, 1, 8, 7).largest_gap(), 8);
  EXPECT_EQ(number(Fragments(layout, 1, 8, 7), Fragments(layout, 1, 8, 7).under_way_after(14)), 0);
}

TEST(LocalPlan, RefusesFragmentsThatDoNotFit) {
  auto const says = [](std::string const& text, std::initializer_list<char const*> words) {
    for (auto const* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  says(refusal({.inner_steps = 3, .fragments = 4}, 2), {"fragments: 4", "inner_steps: 3"});
  says(refusal({.inner_steps = 16, .fragments = 5}, 2), {"fragments: 5", "has 4 with parameters"});
  says(refusal({.inner_steps = 9, .fragments = 4, .delay = 2}, 2),
       {"delay: 2", "inner_steps / fragments: 2", "below 2"});
  EXPECT_EQ(refusal({.inner_steps = 9, .fragments = 4, .delay = 1}, 2), "not refused");
  for (LocalConfig local :
       {LocalConfig{.fragments = 2}, LocalConfig{.delay = 1}, LocalConfig{.mixing_factor = 0.5}}) {
    says(refusal(local, 1), {"strategy.fragments, delay or mixing_factor", "one worker"});
    local.inner_steps = 1;
    says(refusal(local, 2), {"strategy.fragments, delay or mixing_factor", "inner_steps: 1"});
  }
}

/// What is under way is held and saved only where workers do not wait for it.
TEST(LocalPlan, StreamingHoldsWhatIsUnderWay) {
  using gpu::MemoryCategory;
  auto const plain = plan({}, 2);
  auto const at_once = plan({.fragments = 4, .mixing_factor = 0.5}, 2);
  auto const later = plan({.begin_step = 5, .fragments = 4, .delay = 2, .mixing_factor = 0.5}, 2);
  auto const layout = static_cast<std::int64_t>(make_layout(test_model("lenet")).size());
  EXPECT_EQ(at_once.memory.bytes, plain.memory.bytes);
  EXPECT_EQ(later.memory[MemoryCategory::optimizer] - plain.memory[MemoryCategory::optimizer],
            4 * layout);
  EXPECT_EQ(at_once.saved.states, 0);
  EXPECT_EQ(later.saved.states, 1);
  EXPECT_EQ(later.saved.copies, plain.saved.copies);
  EXPECT_EQ(later.sync_every, 4);
  EXPECT_EQ(later.warm_start.like->memory.bytes, plan({.inner_steps = 1}, 2).memory.bytes);
  EXPECT_EQ(later.numbers.choices.at("strategy.fragments"), "4");
  EXPECT_EQ(later.numbers.choices.at("strategy.delay"), "2");
  EXPECT_EQ(later.numbers.choices.at("strategy.mixing_factor"), "0.5");
  std::set<std::uint64_t> hashes;
  for (auto const& local : {LocalConfig{}, LocalConfig{.fragments = 2}, LocalConfig{.delay = 1},
                            LocalConfig{.mixing_factor = 0.5}, LocalConfig{.mixing_factor = 0.25}})
    hashes.insert(plan(local, 2).hash());
  EXPECT_EQ(hashes.size(), 5U);
}

TEST(LocalPlan, SaysOnWhatItsNumbersDepend) {
  auto const local = plan({.inner_steps = 8, .begin_step = 100}, 2);
  EXPECT_FALSE(local.numbers.of_serial);
  EXPECT_EQ(local.numbers.choices.at("strategy.inner_steps"), "8");
  EXPECT_EQ(local.numbers.choices.at("strategy.begin_step"), "100");
  EXPECT_EQ(local.sync_every, 8);
  EXPECT_FALSE(local.shares_results());
  EXPECT_TRUE(local.meets_after_rounds());
  EXPECT_EQ(local.saved.copies, 3);
  EXPECT_EQ(local.warm_start.steps, 100);
  EXPECT_EQ(local.warm_start.like->sync_every, 1);
  EXPECT_NE(local.hash(), plan({.inner_steps = 9, .begin_step = 100}, 2).hash());

  for (auto const& alike : {plan({.inner_steps = 1}, 2), plan({.inner_steps = 8}, 1)}) {
    EXPECT_TRUE(alike.numbers.of_serial);
    EXPECT_TRUE(alike.numbers.choices.empty());
    EXPECT_TRUE(alike.shares_results());
    EXPECT_EQ(alike.saved.copies, 1);
    EXPECT_EQ(alike.warm_start.steps, 0);
  }
}

/// In four steps as many bytes as an averaging has, and the plan's mean of them; before begin_step
/// in every one.
TEST(LocalPlan, PromisesTheBytesThatAreSent) {
  for (auto const* model : {"lenet", "tiny_residual"})
    for (int const ranks : {1, 2, 4})
      for (int const workers : {0, 4, 8}) {
        LocalConfig const local{.workers = workers, .inner_steps = 4, .begin_step = 1};
        Training const training{.model = model, .strategy = local, .steps = 9};
        auto const planned =
            plan_strategy(local, test_model(model), training.optimizer, training.precision, ranks);
        auto const exchange = decided<LocalPlan>(planned).exchange_bytes;
        bool const apart = decided<LocalPlan>(planned).apart();
        EXPECT_EQ(planned.traffic.bytes_sent, apart ? exchange / 4 : exchange);
        run_ranks(ranks, 1, [&](Communicator& communicator) {
          auto const sent = train(training, communicator).bytes_sent;
          for (std::int64_t step = 0; step < 9; ++step)
            EXPECT_EQ(sent[static_cast<std::size_t>(step)], !apart || step % 4 == 0 ? exchange : 0)
                << model << ", step " << step << ", " << ranks << " ranks, " << workers;
        });
      }
}

/// Each fragment after its step, in all what an averaging of everything has but for the second
/// status.
TEST(LocalPlan, PromisesTheBytesOfFragments) {
  for (int const ranks : {1, 2, 4})
    for (int const delay : {0, 1}) {
      LocalConfig const local{
          .workers = 4, .inner_steps = 4, .fragments = 2, .delay = delay, .mixing_factor = 0.5};
      Training const training{.strategy = local, .steps = 9};
      auto const planned = plan_strategy(local, test_model(training.model), training.optimizer,
                                         training.precision, ranks);
      auto const of_one =
          plan_strategy(LocalConfig{.workers = 4, .inner_steps = 4}, test_model(training.model),
                        training.optimizer, training.precision, ranks);
      auto const exchange = decided<LocalPlan>(planned).exchange_bytes;
      EXPECT_EQ(exchange - decided<LocalPlan>(of_one).exchange_bytes,
                all_reduce_bytes(status_room * 4, ranks));
      EXPECT_EQ(planned.traffic.bytes_sent, exchange / 4);
      run_ranks(ranks, 1, [&](Communicator& communicator) {
        auto const sent = train(training, communicator).bytes_sent;
        for (std::size_t step = 0; step < 8; ++step)
          EXPECT_EQ(sent[step] > 0, ranks > 1 && step % 2 == 1) << step;
        EXPECT_EQ(std::accumulate(sent.begin(), sent.begin() + 8, std::int64_t{0}), 2 * exchange);
      });
    }
}

}  // namespace
}  // namespace stratagem::test
