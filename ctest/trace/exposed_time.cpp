#include "trace/exposed/exposed_time.hpp"

#include <gtest/gtest.h>

#include "support/traces.hpp"

namespace stratagem::trace {
namespace {

constexpr double compute = 0, comm = 1;
enum Name { forward, backward, comm_exposed, all_reduce, all_gather, send };  // rows of /names

/// Times are rank 0's; a rank's own clock is behind by `behind`.
struct Rank {
  RankTrace trace;
  double behind = 0;

  Rank(int rank, double behind) : trace(empty_trace(rank)), behind(behind) {
    auto& names = trace.tables.at("/names");
    names.columns["name"] =
        h5::Texts{"forward", "backward", "comm_exposed", "all_reduce", "all_gather", "send"};
    names.rows = 6;
    if (behind != 0)
      add_row(trace, "/clock",
              {{"monotonic_ns", 1}, {"offset_to_rank0_ns", behind}, {"uncertainty_ns", 1}});
  }
  void span(Name name, double begin, double end, double step = 0) {
    add_row(trace, "/spans",
            {{"name_id", name},
             {"lane", name <= comm_exposed ? compute : comm},
             {"t_begin_ns", begin - behind},
             {"t_end_ns", end - behind},
             {"step", step}});
  }
  void push(double worker, double step, double ready, double seen, double applied,
            std::map<std::string, double> more = {}) {
    more.insert({{"worker", worker},
                 {"chunk", -1},
                 {"step", step},
                 {"t_ready_ns", ready - behind},
                 {"t_seen_ns", seen - behind},
                 {"t_applied_ns", applied - behind}});
    add_row(trace, "/ps", more);
  }
};

void expect(ExposedTime const& found, std::int64_t transfer, std::int64_t waiting,
            std::int64_t server) {
  EXPECT_EQ(found.transfer, transfer);
  EXPECT_EQ(found.waiting, waiting);
  EXPECT_EQ(found.server, server);
}

TEST(ExposedTime, ACollectiveWaitsForTheRankThatBeginsLast) {
  Rank early(0, 0), late(1, 5000);
  early.span(forward, 0, 20);
  early.span(comm_exposed, 20, 90);
  early.span(all_reduce, 10, 60);
  early.span(all_gather, 15, 90);
  late.span(backward, 0, 45);
  late.span(comm_exposed, 45, 62);
  late.span(comm_exposed, 80, 92);
  late.span(all_reduce, 40, 62);
  late.span(all_gather, 70, 92);
  // The early rank: for the first until 40, and from its end at 60 for the second until 70.
  expect(exposed_to_collectives({&early.trace, &late.trace}), 40 + 29, 30, 0);
  expect(exposed_to_collectives({&late.trace, &early.trace}), 40 + 29, 30, 0);
}

TEST(ExposedTime, StepsInWhichRanksDoDifferentThingsAreNotTold) {
  Rank one(0, 0), other(1, 0);
  for (auto* rank : {&one, &other}) {
    rank->span(forward, 0, 10);
    rank->span(comm_exposed, 10, 50);
    rank->span(send, 5, 30 + rank->trace.rank());  // is no collective
  }
  one.span(all_reduce, 5, 50);
  other.span(all_gather, 5, 50);
  other.span(comm_exposed, 100, 200, 1);  // nor is a step that one rank alone has kept
  EXPECT_EQ(exposed_to_collectives({&one.trace, &other.trace}).total(), 0);
  other.trace.tables.at("/spans") = one.trace.tables.at("/spans");
  expect(exposed_to_collectives({&one.trace, &other.trace}), 80, 0, 0);
}

/// Two workers in step 5, and a server that has not recorded a push yet.
struct Step {
  Step() {
    first.span(comm_exposed, 70, 150, 5);
    first.span(forward, 150, 160, 5);
    first.span(backward, 160, 170, 5);
    first.span(comm_exposed, 170, 240, 5);
    second.span(comm_exposed, 95, 125, 5);
    second.span(forward, 125, 135, 5);
    second.span(backward, 135, 185, 5);
    second.span(comm_exposed, 185, 235, 5);
  }
  ExposedTime found(std::vector<RankTrace const*> const& servers) const {
    return exposed_to_servers({&first.trace, &second.trace}, servers);
  }

  Rank first{0, 0}, second{1, 300}, server{2, 7000};
};

TEST(ExposedTime, TheLastWorkerWaitsForNobody) {
  Step step;
  step.server.push(-1, 4, 80, 100, 120);
  step.server.push(-1, 5, 180, 200, 230);
  // Of update 4: waiting 10 of the first until it is announced, and 15 of its 20 until it has come
  // altogether, of which the second was exposed 5. Of update 5 likewise 10, and 5 of 20.
  expect(step.found({&step.server.trace}), 2 * 5 + 30 + 5 + 2 * 15 + 10 + 5, 25 + 15, 40 + 60);
}

TEST(ExposedTime, TheLastOfSeveralServersCounts) {
  Step step;
  Rank other(3, 0);
  step.server.push(-1, 4, 80, 90, 95);
  other.push(-1, 4, 75, 100, 120);
  step.server.push(-1, 5, 170, 200, 230);
  other.push(-1, 5, 180, 190, 195);
  expect(step.found({&step.server.trace, &other.trace}), 90, 40, 100);
}

TEST(ExposedTime, WithADelayParametersAreThoseOfAnEarlierUpdate) {
  Step step;
  step.server.push(-1, 3, 80, 100, 120, {{"lag", 1}});
  step.server.push(-1, 4, 300, 310, 320, {{"lag", 1}});
  step.server.push(-1, 5, 180, 200, 230, {{"lag", 1}});
  expect(step.found({&step.server.trace}), 90, 40, 100);
}

TEST(ExposedTime, StepsThatSomeWorkerDidNotKeepAreNotTold) {
  Step step;
  step.server.push(-1, 4, 80, 100, 120);
  step.server.push(-1, 5, 180, 200, 230);
  Rank third(3, 0);
  third.span(comm_exposed, 0, 10, 4);
  EXPECT_EQ(exposed_to_servers({&step.first.trace, &step.second.trace, &third.trace},
                               {&step.server.trace})
                .total(),
            0);
}

TEST(ExposedTime, AnAsynchronousWorkerMayBeHeldBack) {
  Rank first(0, 0), second(1, 0), server(2, 400);
  first.span(backward, 10, 25);
  first.span(comm_exposed, 25, 110);
  second.span(forward, 25, 110);
  server.push(1, 0, 10, 20, 40, {{"base_version", 0}, {"applied_version", 1}});
  server.push(0, 0, 30, 45, 60, {{"base_version", 0}, {"applied_version", 2}});
  server.push(1, 1, 70, 80, 90, {{"base_version", 1}, {"applied_version", 3}});
  server.push(0, 1, 150, 155, 160, {{"base_version", 3}, {"applied_version", 4}});
  auto const found = exposed_to_servers({&first.trace, &second.trace}, {&server.trace});
  // The server treats the other's push until 40 and this one from 45 to 60. The worker goes on
  // with version 3, which was made at 90: the server's work on it is what is waited for.
  expect(found, 5 + 5 + 20, 30, 10 + 15);
}

TEST(ExposedTime, AWorkerThatGoesOnAtOnceIsNotHeldBack) {
  Rank worker(0, 0), server(1, 0);
  worker.span(comm_exposed, 60, 100);
  server.push(1, 0, 10, 20, 40, {{"base_version", 0}, {"applied_version", 1}});
  server.push(0, 0, 30, 45, 60, {{"base_version", 0}, {"applied_version", 2}});
  server.push(1, 1, 70, 80, 90, {{"base_version", 1}, {"applied_version", 3}});
  server.push(0, 1, 150, 155, 160, {{"base_version", 2}, {"applied_version", 4}});
  expect(exposed_to_servers({&worker.trace}, {&server.trace}), 40, 0, 0);
}

}  // namespace
}  // namespace stratagem::trace
