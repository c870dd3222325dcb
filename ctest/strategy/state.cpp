#include "strategy/state/state.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

constexpr char const* momentum = "momentum";

/// Every parameter cut into a part per rank, some of them empty; its momentum is the sum of two
/// terms.
struct Cut {
  Cut(Model const& model, int rank, int ranks) : layout(make_layout(model)) {
    state.of_parameters = {{State::parameters, at::kFloat, {}}, {momentum, at::kFloat, {}}};
    for (std::size_t i = 0; i < layout.entries().size(); ++i) {
      auto const numel = layout.entries()[i].spec.numel();
      FlatRange const own{numel * rank / ranks, numel * (rank + 1) / ranks};
      if (own.size() == 0) continue;
      auto const values = at::arange(own.begin, own.end, at::kFloat) + static_cast<double>(i);
      state.of_parameters[0].pieces.push_back({i, own, {values}});
      state.of_parameters[1].pieces.push_back({i, own, {values.clone(), at::ones_like(values)}});
    }
  }

  ParameterLayout layout;
  State state;
};

/// What is whole of entry `i`, in the order of its memory.
at::Tensor whole(ParameterEntry const& entry, std::size_t i) {
  auto const flat = at::arange(entry.spec.numel(), at::kFloat) + static_cast<double>(i);
  return flat.as_strided(entry.spec.shape, entry.strides).contiguous();
}

std::map<std::string, at::Tensor> as_map(NamedTensors const& tensors) {
  return {tensors.begin(), tensors.end()};
}

TEST(State, PartsOfSeveralRanksBecomeWholeWhereTheyAreWanted) {
  auto const model = test::test_model("tiny_residual");
  for (int const ranks : {1, 2, 3, 4})
    run_ranks(ranks, 1, [&](Communicator& communicator) {
      Cut const cut(model, communicator.rank(), ranks);
      auto const is_head = [](std::string const& name) { return name.starts_with("head"); };
      auto const last = communicator.rank() == ranks - 1;
      auto const wanted = [&](std::string const& name) { return last || is_head(name); };
      for (auto const* kind : {State::parameters, momentum}) {
        auto const gathered = as_map(gather(cut.state, kind, model, wanted, communicator));
        for (std::size_t i = 0; i < cut.layout.entries().size(); ++i) {
          auto const& entry = cut.layout.entries()[i];
          ASSERT_EQ(gathered.contains(entry.spec.name), wanted(entry.spec.name));
          if (!wanted(entry.spec.name)) continue;
          auto const more = kind == momentum ? 1 : 0;
          EXPECT_TRUE(gathered.at(entry.spec.name).equal(whole(entry, i) + more))
              << kind << " " << entry.spec.name << " on rank " << communicator.rank();
        }
      }
    });
}

TEST(State, PartsOfATensorAreJoined) {
  auto const model = test::test_model("tiny_odd");
  run_ranks(2, 1, [&](Communicator& communicator) {
    Cut const cut(model, communicator.rank(), 2);
    auto const gathered =
        as_map(gather(cut.state, State::parameters, model, all_tensors, communicator));
    EXPECT_EQ(gathered.at("wide.weight").size(0), 19);
  });
}

/// As factors of a matrix are, which fill a part of its place.
TEST(State, ElementsThatNoRankHoldsAre0) {
  auto const model = test::test_model("tiny_residual");
  auto const layout = make_layout(model);
  run_ranks(2, 1, [&](Communicator& communicator) {
    State state{.of_parameters = {{State::parameters, at::kFloat, {}}}};
    std::int64_t const begin = communicator.rank() == 0 ? 1 : 4;  // [1, 3) and [4, 6)
    state.of_parameters[0].pieces = {{0, {begin, begin + 2}, {at::ones({2}) * begin}}};
    auto const all = [](std::string const&) { return true; };
    auto const gathered = as_map(gather(state, State::parameters, model, all, communicator));
    for (std::size_t i = 0; i < layout.entries().size(); ++i) {
      auto const& entry = layout.entries()[i];
      auto expected = at::zeros({entry.spec.numel()}, at::kFloat);
      if (i == 0) {
        expected.slice(0, 1, 3).fill_(1);
        expected.slice(0, 4, 6).fill_(4);
      }
      auto const& found = gathered.at(entry.spec.name);
      EXPECT_TRUE(found.equal(expected.as_strided(entry.spec.shape, entry.strides)))
          << entry.spec.name;
    }
  });
}

TEST(State, WhatIsLoadedIsGathered) {
  auto const model = test::test_model("tiny_residual");
  run_ranks(3, 1, [&](Communicator& communicator) {
    Cut const cut(model, communicator.rank(), 3);
    for (auto const* kind : {State::parameters, momentum}) {
      std::map<std::string, at::Tensor> given;
      for (auto const& entry : cut.layout.entries())
        given[entry.spec.name] = at::randn(entry.spec.shape);
      load(cut.state, kind, model, given);
      // Each rank drew its own: the pieces of a tensor are its holders'.
      for (auto const& [name, tensor] : gather(cut.state, kind, model, all_tensors, communicator)) {
        auto const same = tensor.eq(given.at(name)).sum().item<std::int64_t>();
        EXPECT_GE(same, tensor.numel() / 3) << kind << " " << name;
      }
    }
    auto const& terms = cut.state.of_parameters[1].pieces.front().terms;
    EXPECT_TRUE(terms[0].equal(terms[1])) << "each term becomes an equal part";
  });
}

/// Three workers with a momentum of their own, on two ranks: the first plays two of them.
TEST(State, WhatAWorkerHasOfItsOwnIsGatheredAndLoadedApart) {
  auto const model = test::test_model("tiny_odd");
  run_ranks(2, 1, [&](Communicator& communicator) {
    auto const layout = make_layout(model);
    FlatRange const all{0, layout.size()};
    State state;
    for (int worker = 0; worker < 3; ++worker) {
      ParameterState own{momentum, at::kFloat, {}, worker};
      if (worker / 2 == communicator.rank())
        own.pieces = pieces_of(layout, all, at::full({layout.size()}, worker, at::kFloat));
      state.of_parameters.push_back(own);
    }
    auto const expect = [&](int worker, double value) {
      auto const found = gather(state, momentum, model, all_tensors, communicator, worker);
      ASSERT_FALSE(found.empty());
      for (auto const& [name, tensor] : found)
        EXPECT_TRUE(tensor.eq(value).all().item<bool>()) << name << " of worker " << worker;
    };
    for (int worker = 0; worker < 3; ++worker) expect(worker, worker);
    EXPECT_TRUE(gather(state, momentum, model, all_tensors, communicator).empty());

    std::map<std::string, at::Tensor> sevens;
    for (auto const& entry : layout.entries()) {
      auto shape = entry.spec.shape;
      if (entry.spec.is_part()) shape.front() = entry.spec.total_rows;
      sevens[entry.spec.name] = at::full(shape, 7, at::kFloat);
    }
    load(state, momentum, model, sevens, 1);
    for (int worker = 0; worker < 3; ++worker) expect(worker, worker == 1 ? 7 : worker);
    load(state, momentum, model, sevens, ParameterState::all_workers);
    expect(2, 2);
    load(state, momentum, model, sevens);
    for (int worker = 0; worker < 3; ++worker) expect(worker, 7);
  });
}

TEST(State, AKindThatIsNotDeclaredIsEmpty) {
  auto const model = test::test_model("tiny_odd");
  run_ranks(2, 1, [&](Communicator& communicator) {
    Cut const cut(model, communicator.rank(), 2);
    EXPECT_TRUE(gather(cut.state, "exp_avg", model, all_tensors, communicator).empty());
  });
}

/// Three workers on two ranks: the first plays two of them.
TEST(State, StatisticsAreAveragedOverAllWorkers) {
  auto const model = test::test_model("tiny_residual");
  run_ranks(3, 1, [&](Communicator& communicator) {
    std::map<int, Buffers> own;
    std::vector<int> const played[]{{0, 2}, {1}, {}};
    for (int const worker : played[communicator.rank()]) {
      auto& buffers = own[worker] = make_buffers(model, {}, Precision::fp32);
      for (auto& of_block : buffers)
        for (auto& buffer : of_block) buffer.fill_(worker == 0 ? 1e8F : worker == 1 ? 3.0F : -1e8F);
    }
    auto const means = average(own, communicator);
    ASSERT_EQ(means.empty(), own.empty());
    for (auto const& of_block : means)
      for (auto const& mean : of_block)  // 1e8 + 3 is 1e8 in fp32; counters take the first's value
        EXPECT_TRUE(mean.eq(mean.is_floating_point() ? 0.0 : 1e8).all().item<bool>());
  });
}

}  // namespace
}  // namespace stratagem
