#include "comm/watchdog/failure_detector.hpp"

#include <array>
#include <tuple>

#include <gtest/gtest.h>

namespace stratagem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr WatchdogConfig config{.floor_s = 5, .factor = 5};

/// Two ranks, of which the second is watched by the first; looks every 100 ms.
class Pair {
 public:
  /// Goes on for so long; what was found at last.
  std::vector<FailureDetector::Accusation> pass(nanoseconds time,
                                                std::optional<nanoseconds> limit = 5s) {
    std::vector<FailureDetector::Accusation> found;
    for (nanoseconds passed{}; passed < time; passed += 100ms) {
      for (std::size_t slot = 0; slot < glances.size(); ++slot) {
        if (!runs[slot]) continue;
        ++glances[slot].beats;
        ++glances[slot].marks;
        ++glances[slot].communication_beats;
      }
      found = detector.look(100ms, glances, limit, [this](std::size_t) { return process; });
    }
    return found;
  }
  std::vector<FailureDetector::Accusation> skip(nanoseconds time) {
    return detector.look(time, glances, 5s, [this](std::size_t) { return process; });
  }

  std::vector<Glance> glances{2};
  std::array<bool, 2> runs{true, true};
  std::optional<ProcessState> process = ProcessState::lives;
  FailureDetector detector{config, 0, 2};
};

std::optional<nanoseconds> limit(std::int64_t count, nanoseconds p99,
                                 trace::Activity activity = trace::Activity::forward) {
  return limit_of(config, activity, {count, p99.count()});
}

TEST(FailureDetector, LimitsGrowWithThePhaseAndAreGenerousWithoutAHistory) {
  EXPECT_EQ(limit(100, 10ms), 5s);
  EXPECT_EQ(limit(100, 3s), 15s);
  EXPECT_EQ(limit(1, 3s), 30s);
  EXPECT_EQ(limit(0, 0s), std::nullopt);
  for (auto const activity : {trace::Activity::init, trace::Activity::evaluate,
                              trace::Activity::save, trace::Activity::between})
    EXPECT_EQ(limit(100, 10ms, activity), std::nullopt);
}

/// 1e308 is a way to write "never".
TEST(FailureDetector, AHugeLimitIsNeverReached) {
  for (auto const& huge : {WatchdogConfig{.floor_s = 1e308, .factor = 5},
                           WatchdogConfig{.floor_s = 5, .factor = 1e308},
                           WatchdogConfig{.floor_s = 1e308, .factor = 1e308}}) {
    EXPECT_EQ(limit_of(huge, trace::Activity::forward, {100, 10'000'000}), nanoseconds::max());
    Pair pair;
    pair.detector = FailureDetector(huge, 0, 2);
    pair.pass(2s, nanoseconds::max());
    pair.runs = {false, false};
    EXPECT_TRUE(pair.pass(4s, nanoseconds::max()).empty());
  }
}

TEST(FailureDetector, SilenceIsCountedFromTheLastBeat) {
  Pair pair;
  pair.pass(2s);
  EXPECT_EQ(pair.detector.silence_of(1), 0s);
  pair.runs[1] = false;
  pair.pass(900ms);
  EXPECT_EQ(pair.detector.silence_of(1), 900ms);
}

TEST(FailureDetector, WhoeverGoesOnIsLeftAlone) {
  Pair pair;
  EXPECT_TRUE(pair.pass(60s).empty());
}

TEST(FailureDetector, ARankThatComputesWithoutEndIsStalled) {
  Pair pair;
  pair.runs[0] = false;
  EXPECT_TRUE(pair.pass(5s).empty());
  auto const found = pair.pass(300ms);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].slot, 0U);
  EXPECT_EQ(found[0].finding, Finding::stalled);
  EXPECT_GE(found[0].age, 5s);
  pair.runs[0] = true;
  EXPECT_TRUE(pair.pass(100ms).empty());
}

TEST(FailureDetector, WaitingIsNoHangAndNeitherIsWhatHasNoLimit) {
  Pair pair;
  pair.runs[0] = false;
  pair.glances[0].waits = true;
  EXPECT_TRUE(pair.pass(60s).empty());
  pair.glances[0].waits = false;
  EXPECT_TRUE(pair.pass(60s, std::nullopt).empty());
}

TEST(FailureDetector, CommunicationThatStandsStillIsASymptomWhileSomethingIsUnderWay) {
  Pair pair;
  pair.runs[0] = false;
  pair.glances[0].waits = true;
  EXPECT_TRUE(pair.pass(60s).empty());
  pair.glances[0].communicates = true;
  EXPECT_TRUE(pair.pass(25s).empty());
  auto const found = pair.pass(300ms);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].finding, Finding::mute);
}

TEST(FailureDetector, APeerIsJudgedByWhatTheSystemSaysOfItsProcess) {
  for (auto const& [state, finding, after] :
       {std::tuple{ProcessState::stopped, Finding::stopped, 5s},
        {ProcessState::gone, Finding::gone, 5s},
        {ProcessState::lives, Finding::silent, 25s}}) {
    Pair pair;
    pair.runs[1] = false;
    pair.process = state;
    EXPECT_TRUE(pair.pass(after - 200ms).empty());
    auto const found = pair.pass(500ms);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].slot, 1U);
    EXPECT_EQ(found[0].finding, finding);
    pair.runs[1] = true;
    EXPECT_TRUE(pair.pass(100ms).empty());
  }
}

TEST(FailureDetector, APeerThatTheSystemDoesNotSeeIsGivenTimeForItsNews) {
  Pair pair;
  pair.runs[1] = false;
  pair.process = std::nullopt;
  EXPECT_TRUE(pair.pass(7500ms).empty());
  auto const found = pair.pass(200ms);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].finding, Finding::silent);
}

TEST(FailureDetector, ADebuggerMayHoldARankForEver) {
  Pair pair;
  pair.runs = {false, false};
  pair.process = ProcessState::traced;
  EXPECT_TRUE(pair.pass(600s).empty());
}

TEST(FailureDetector, ARankThatHasLeftOrNotYetComeIsNotMissed) {
  for (auto const presence : {Presence::absent, Presence::left}) {
    Pair pair;
    pair.runs[1] = false;
    pair.process = ProcessState::gone;
    pair.glances[1].presence = presence;
    EXPECT_TRUE(pair.pass(60s).empty());
  }
}

TEST(FailureDetector, AfterAStopOfTheWholeJobAllLimitsBeginAnew) {
  Pair pair;
  pair.runs = {false, false};
  pair.process = ProcessState::stopped;
  EXPECT_TRUE(pair.pass(4s).empty());
  EXPECT_TRUE(pair.skip(3600s).empty());
  EXPECT_TRUE(pair.pass(4900ms).empty());
  EXPECT_EQ(pair.pass(300ms).size(), 2U);
}

}  // namespace
}  // namespace stratagem
