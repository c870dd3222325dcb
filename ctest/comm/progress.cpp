#include "comm/work/progress.hpp"

#include <atomic>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/system.hpp"

namespace stratagem {
namespace {

using namespace std::chrono_literals;

/// Finishes after so many tries, or when it is told to.
class Scripted final : public Operation {
 public:
  Scripted(std::string name, bool collective, std::vector<std::string>& log,
           std::atomic<bool> const* may_finish = nullptr)
      : name_(std::move(name)), collective_(collective), log_(log), may_finish_(may_finish) {}

  std::string_view name() const override { return name_; }
  bool collective() const override { return collective_; }
  State advance() override {
    if (tries_++ == 0) log_.push_back(name_);  // only the progress thread comes here
    if (may_finish_ != nullptr) return *may_finish_ ? State::finished : State::stuck;
    return tries_ < 3 ? State::moved : State::finished;
  }

 private:
  std::string name_;
  bool collective_;
  std::vector<std::string>& log_;
  std::atomic<bool> const* may_finish_;
  int tries_ = 0;
};

class Broken final : public Operation {
 public:
  std::string_view name() const override { return "broken"; }
  bool collective() const override { return true; }
  State advance() override { throw std::runtime_error("broken"); }
};

TEST(Progress, CollectivesStartInOrderOthersAtOnce) {
  std::vector<std::string> log;
  std::atomic<bool> may_finish = false;
  {
    Progress progress(nullptr, 60s);
    std::vector<Work> works;
    for (auto const* name : {"a", "b", "c", "d"})
      works.push_back(
          progress.submit(std::make_unique<Scripted>(name, true, log, &may_finish), {}));
    auto message = progress.submit(std::make_unique<Scripted>("message", false, log), {});
    message.wait_on_host();  // although all collectives are stuck
    EXPECT_FALSE(works[0].done());
    may_finish = true;
  }
  std::erase(log, "message");
  EXPECT_EQ(log, (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Progress, DestructorFinishesWhatWasSubmitted) {
  std::vector<std::string> log;
  Work work;
  {
    Progress progress(nullptr, 60s);
    for (int i = 0; i < 100; ++i)
      work = progress.submit(std::make_unique<Scripted>("x", true, log), {});
  }
  EXPECT_TRUE(work.done());
  EXPECT_EQ(log.size(), 100U);
}

TEST(Progress, FailureEndsEverything) {
  std::vector<std::string> log;
  std::atomic<bool> never = false;
  Progress progress(nullptr, 60s);
  auto stuck = progress.submit(std::make_unique<Scripted>("stuck", true, log, &never), {});
  auto broken = progress.submit(std::make_unique<Broken>(), {});
  EXPECT_THROW(broken.wait_on_host(), std::runtime_error);
  EXPECT_THROW(stuck.wait_on_host(), std::runtime_error);
  auto later = progress.submit(std::make_unique<Scripted>("later", true, log), {});
  EXPECT_THROW(later.wait_on_host(), std::runtime_error);
}

TEST(Progress, NothingMovingIsAStallThatNamesTheOperation) {
  std::vector<std::string> log;
  std::atomic<bool> never = false;
  Progress progress(nullptr, 50ms);
  auto stuck = progress.submit(std::make_unique<Scripted>("stuck", true, log, &never), {});
  try {
    stuck.wait_on_host();
    FAIL() << "no error";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::stall);
    EXPECT_EQ(std::string(error.what()).rfind("stuck has waited", 0), 0U) << error.what();
  }
}

TEST(Progress, SleepsWhenNothingIsUnderWayAndNapsWhenAPeerIsLate) {
  std::vector<std::string> log;
  std::atomic<bool> may_finish = false;
  Progress progress(nullptr, 60s);
  auto const before_idle = process_cpu_seconds();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(process_cpu_seconds() - before_idle, 0.02);
  auto late = progress.submit(std::make_unique<Scripted>("late", true, log, &may_finish), {});
  auto const before_late = process_cpu_seconds();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(process_cpu_seconds() - before_late, 0.1);
  may_finish = true;
  late.wait_on_host();
}

}  // namespace
}  // namespace stratagem
