#include <cmath>
#include <map>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "comm/inprocess/inprocess_world.hpp"
#include "conformance/training.hpp"
#include "strategy/gossip/mixer.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/ps/protocol/messages.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/timing/lanes.hpp"
#include "support/recording_communicator.hpp"
#include "support/tiny_models.hpp"
#include "support/wrapped_world.hpp"

namespace stratagem::test {
namespace {

constexpr int workers = 2;
constexpr std::int64_t steps = 8;  // asynchronous workers divide them unequally
constexpr std::int64_t status_bytes = status_room * 4;

/// A block that tells when its passes begin.
class Observed final : public Block {
 public:
  Observed(std::unique_ptr<Block> inner, Events& events)
      : Block(inner->name()), inner_(std::move(inner)), events_(events) {
    declare_ = inner_->declaration();
  }

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    events_.emplace_back("forward");
    auto y = inner_->forward(x, frame);
    if (y.requires_grad())
      y.register_hook([this](at::Tensor const&) { events_.emplace_back("backward"); });
    return y;
  }
  Part part() const override { return inner_->part(); }

 private:
  std::unique_ptr<Block> inner_;
  Events& events_;
};

Model observed_model(Events& events) {
  auto model = tiny_residual(1, 10);
  for (auto& block : model.blocks) block = std::make_unique<Observed>(std::move(block), events);
  return model;
}

/// From the first pass of the third step to that of the fourth.
Events third_step(Events const& all, std::int64_t passes_per_step) {
  Events events;
  std::int64_t passes = 0;
  for (auto const& event : all) {
    if (event == "forward") ++passes;
    if (passes > 2 * passes_per_step && passes <= 3 * passes_per_step) events.push_back(event);
  }
  return events;
}

/// Control takes no time in a prediction, so it is left out: the status, also where it is
/// sent with the bucket of the first block; a push's header, its answer, sends that end, and what
/// neighbours tell beside parameters. The end of a message is that of one that arrives.
std::string without_control(std::string const& event, std::int64_t last_bucket_bytes,
                            std::int64_t message_bytes) {
  auto const told = message_bytes + Mixer::tail * 4;
  if (event == str("send ", told)) return str("send ", message_bytes);
  for (std::string const prefix : {"all_reduce ", "wait all_reduce "}) {
    if (event == str(prefix, status_bytes)) return {};
    if (event == str(prefix, status_bytes + last_bucket_bytes))
      return str(prefix, last_bucket_bytes);
  }
  auto const header_bytes = bytes_of(empty_message());
  if (event == str("send ", header_bytes) || event == str("wait receive ", header_bytes) ||
      event.starts_with("wait send "))
    return {};
  return event.starts_with("wait receive ") ? "wait chunk" : event;
}

/// What rank 0 does, a worker.
Events done_by_member(StrategyConfig const& strategy, int ranks) {
  std::vector<Events> events(static_cast<std::size_t>(ranks));
  run_worlds(ranks, 0, [&](World& inner) {
    auto& own = events[static_cast<std::size_t>(inner.all().rank())];
    auto const model = observed_model(own);
    WrappedWorld world(inner, [&own](Communicator& group) {
      return std::make_unique<RecordingCommunicator>(group, own);
    });
    static_cast<void>(train({.strategy = strategy, .steps = steps}, model, world));
  });
  return events.front();
}

/// What its time is made of. A forward pass of a block takes 1 s and a backward pass 1000 s; a
/// message takes a second per byte, and a fraction of one that tells its kind.
class Predicted {
 public:
  Predicted(StrategyConfig const& strategy, int ranks) : model_(tiny_residual(1, 10)) {
    auto const blocks = static_cast<double>(model_.blocks.size());
    auto const of_bytes = [](double kind) { return Curve({{0, kind}, {1e9, 1e9 + kind}}); };
    StepCosts const costs{.forward_s = blocks,
                          .backward_s = 1000 * blocks,
                          .optimizer_s = 1e-6,
                          .all_reduce = of_bytes(0.125),
                          .reduce_scatter = of_bytes(0.25),
                          .all_gather = of_bytes(0.5),
                          .message = of_bytes(0.75),
                          .exchange = of_bytes(0.75),
                          .push = Curve({{0, 0}, {1e9, 1e9}}),
                          .codecs = {{Code::int8, Rounding::nearest, {}},
                                     {Code::top_k, Rounding::nearest, {}},
                                     {Code::random_k, Rounding::nearest, {}},
                                     {Code::low_rank, Rounding::nearest, {}}}};
    auto const plan = plan_strategy(strategy, model_, {}, {}, ranks);
    awaits_chunks_ = plan.placement.servers() > 0;
    StepParts const parts(plan, model_, costs, [this](Lanes::Event const& event) { hear(event); });
    static_cast<void>(plan.strategy->time(parts));
  }

  Events const& events() const { return events_; }
  std::int64_t blocks() const { return static_cast<std::int64_t>(model_.blocks.size()); }

 private:
  void hear(Lanes::Event const& event) {
    auto const whole = std::floor(event.seconds);
    switch (event.kind) {
      case Lanes::Event::Kind::compute:
        if (event.seconds >= 1000)
          events_.insert(events_.end(), static_cast<std::size_t>(whole / 1000), "backward");
        else if (event.seconds >= 1)
          events_.insert(events_.end(), static_cast<std::size_t>(whole), "forward");
        break;  // else an update
      case Lanes::Event::Kind::communicate: {
        auto const kind = event.seconds - whole;
        auto const* name = kind == 0.125  ? "all_reduce "
                           : kind == 0.25 ? "reduce_scatter "
                           : kind == 0.5  ? "all_gather "
                                          : "send ";
        events_.push_back(name + std::to_string(static_cast<std::int64_t>(whole)));
        under_way_[event.end] = events_.back();
        break;
      }
      case Lanes::Event::Kind::await:  // the first for an operation, or for a chunk's arrival
        if (awaits_chunks_) {
          if (event.seconds > 0 && arrivals_.insert(event.seconds).second)
            events_.emplace_back("wait chunk");
        } else if (auto const found = under_way_.extract(event.seconds)) {
          events_.push_back(found.mapped().starts_with("send ") ? "wait chunk"
                                                                : "wait " + found.mapped());
        }
        break;
    }
  }

  Model model_;
  Events events_;
  std::map<double, std::string> under_way_;  ///< by when they end
  bool awaits_chunks_ = false;               ///< of parameters, and no operation of its own
  std::set<double> arrivals_;                ///< of those that were awaited
};

std::string text_of(Events const& events) {
  return join(events, "\n");
}

/// The bytes of the last one of its name, "all_reduce ", that begins in a step.
std::int64_t last_bytes(Events const& events, std::string const& name) {
  std::int64_t bytes = -1;
  for (auto const& event : events)
    if (event.starts_with(name)) bytes = parse_integer(event.substr(name.size())).value_or(-1);
  return bytes;
}

/// `members`: that compute.
void expect_one_order(StrategyConfig const& strategy, int micro_batches, int members = workers) {
  auto const ranks = members + servers_of(strategy);
  Predicted const predicted(strategy, ranks);
  auto const passes = predicted.blocks() * micro_batches;
  auto const expected = third_step(predicted.events(), passes);
  ASSERT_GT(expected.size(), static_cast<std::size_t>(2 * passes));
  auto const* ddp = std::get_if<DdpConfig>(&strategy);
  bool const is_beside = ddp != nullptr && ddp->compression.on();  // the status
  auto const sum = is_beside ? -1 : last_bytes(expected, "all_reduce ");
  bool const mixes = std::holds_alternative<GossipConfig>(strategy);
  auto const message = mixes ? last_bytes(expected, "send ") : -1;
  Events done;
  for (auto const& event : third_step(done_by_member(strategy, ranks), passes))
    if (auto text = without_control(event, sum, message); !text.empty())
      done.push_back(std::move(text));
  EXPECT_EQ(text_of(done), text_of(expected));
}

constexpr double kib = 1.0 / 1024;

TEST(StepOrder, DdpIsTimedAsItSteps) {
  for (bool const overlap : {true, false})
    for (int const micro_batches : {1, 2}) {
      SCOPED_TRACE(str(overlap ? "overlap" : "in turn", ", ", micro_batches, " micro-batches"));
      expect_one_order(
          DdpConfig{.bucket_mb = kib, .overlap = overlap, .micro_batches = micro_batches},
          micro_batches);
    }
}

/// In turn: else sums are added up when codes have arrived, which is not the same in every run.
TEST(StepOrder, CodesAreTimedAsTheyAreSent) {
  constexpr Compression int8{.code = Code::int8};
  for (int const micro_batches : {1, 2}) {
    SCOPED_TRACE(str(micro_batches, " micro-batches"));
    expect_one_order(DdpConfig{.bucket_mb = kib,
                               .overlap = false,
                               .micro_batches = micro_batches,
                               .compression = int8},
                     micro_batches);
  }
  for (auto const shard : {Shard::optimizer, Shard::full}) {
    SCOPED_TRACE(str("shard ", static_cast<int>(shard)));
    expect_one_order(
        FsdpConfig{.shard = shard, .unit_mb = kib, .overlap = false, .compression = int8}, 1);
  }
}

TEST(StepOrder, GathersOfCodesAreTimedAsTheyAreMade) {
  for (auto const shard : {Shard::gradients, Shard::full})
    for (bool const overlap : {true, false})
      for (int const micro_batches : {1, 2}) {
        SCOPED_TRACE(str("shard ", static_cast<int>(shard), overlap ? ", overlap, " : ", in turn, ",
                         micro_batches, " micro-batches"));
        expect_one_order(FsdpConfig{.shard = shard,
                                    .unit_mb = kib,
                                    .overlap = overlap,
                                    .micro_batches = micro_batches,
                                    .parameter_compression = Code::int8},
                         micro_batches);
      }
}

/// Of rank 4, so that no factor has as many bytes as the status.
TEST(StepOrder, CodesWithoutBlocksAreTimedAsTheyAreSent) {
  for (Compression const& code :
       {Compression{.code = Code::top_k}, Compression{.code = Code::random_k},
        Compression{.code = Code::low_rank, .error_feedback = true, .matrix_rank = 4}})
    for (bool const overlap : {true, false})
      for (int const micro_batches : {1, 2}) {
        SCOPED_TRACE(str(name_of(code.code), overlap ? ", overlap, " : ", in turn, ", micro_batches,
                         " micro-batches"));
        expect_one_order(DdpConfig{.bucket_mb = kib,
                                   .overlap = overlap,
                                   .micro_batches = micro_batches,
                                   .compression = code},
                         micro_batches);
      }
}

/// In the third step gradients are averaged, or parameters.
TEST(StepOrder, LocalIsTimedAsItSteps) {
  for (int const inner_steps : {1, 3})
    for (int const micro_batches : {1, 2}) {
      SCOPED_TRACE(str("every ", inner_steps, " steps, ", micro_batches, " micro-batches"));
      expect_one_order(LocalConfig{.inner_steps = inner_steps, .micro_batches = micro_batches},
                       micro_batches);
    }
}

/// In the third step a fragment is sent, or taken, or both.
TEST(StepOrder, FragmentsAreTimedAsTheyAreSentAndTaken) {
  for (auto const& local : {LocalConfig{.inner_steps = 3, .delay = 1},
                            LocalConfig{.inner_steps = 4, .fragments = 2, .delay = 1},
                            LocalConfig{.inner_steps = 3, .outer_lr = 0.7, .fragments = 3},
                            LocalConfig{.inner_steps = 3, .fragments = 2, .mixing_factor = 0.5}}) {
    SCOPED_TRACE(str("every ", local.inner_steps, " steps, ", local.fragments, " fragments, delay ",
                     local.delay));
    expect_one_order(local, 1);
  }
}

TEST(StepOrder, GossipIsTimedAsItSteps) {
  for (int const micro_batches : {1, 2}) {
    SCOPED_TRACE(str(micro_batches, " micro-batches"));
    expect_one_order(GossipConfig{.micro_batches = micro_batches}, micro_batches);
  }
}

TEST(StepOrder, FsdpIsTimedAsItSteps) {
  for (auto const shard : {Shard::optimizer, Shard::gradients, Shard::full})
    for (bool const overlap : {true, false})
      for (int const micro_batches : {1, 2}) {
        SCOPED_TRACE(str("shard ", static_cast<int>(shard), overlap ? ", overlap, " : ", in turn, ",
                         micro_batches, " micro-batches"));
        expect_one_order(
            FsdpConfig{
                .shard = shard, .unit_mb = kib, .overlap = overlap, .micro_batches = micro_batches},
            micro_batches);
      }
}

TEST(StepOrder, SumsOverReplicasAreTimedAsTheyAreMade) {
  for (int const members : {2, 4})
    for (auto const shard : {Shard::optimizer, Shard::full})
      for (bool const overlap : {true, false})
        for (int const micro_batches : {1, 2}) {
          SCOPED_TRACE(str(members, " ranks, shard ", static_cast<int>(shard),
                           overlap ? ", overlap, " : ", in turn, ", micro_batches,
                           " micro-batches"));
          expect_one_order(FsdpConfig{.shard = shard,
                                      .replicas = 2,
                                      .unit_mb = kib,
                                      .overlap = overlap,
                                      .micro_batches = micro_batches},
                           micro_batches, members);
        }
}

TEST(StepOrder, WorkersOfServersAreTimedAsTheyStep) {
  for (auto const mode : {PsMode::sync, PsMode::delayed_sync, PsMode::async})
    for (int const micro_batches : {1, 2}) {
      SCOPED_TRACE(str("mode ", static_cast<int>(mode), ", ", micro_batches, " micro-batches"));
      expect_one_order(PsConfig{.chunk_mb = kib, .mode = mode, .micro_batches = micro_batches},
                       micro_batches);
    }
}

TEST(StepOrder, CodedPushesAreTimedAsTheyAreMade) {
  for (auto const mode : {PsMode::sync, PsMode::async}) {
    SCOPED_TRACE(static_cast<int>(mode));
    expect_one_order(PsConfig{.chunk_mb = kib, .mode = mode, .compression = {Code::int8}}, 1);
  }
}

TEST(StepOrder, PullsThatAreLeftOutAreNeitherAwaitedNorTimed) {
  for (auto const pulls : {ServerPolicy::Pulls::consistent, ServerPolicy::Pulls::chunkwise}) {
    SCOPED_TRACE(static_cast<int>(pulls));
    expect_one_order(
        PsConfig{.chunk_mb = kib, .mode = PsMode::async, .pull_every = 2, .pulls = pulls}, 1);
  }
}

}  // namespace
}  // namespace stratagem::test
