#include "trace/validate.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "support/scratch.hpp"
#include "trace/sample.hpp"

namespace stratagem::trace {
namespace {

h5::Integers& integers(RankTrace& trace, char const* table, char const* column) {
  return std::get<h5::Integers>(trace.tables.at(table).columns.at(column));
}

struct Fault {
  char const* name;
  std::function<void(RankTrace&)> plant;
  char const* finding;
};

void PrintTo(Fault const& fault, std::ostream* out) {
  *out << fault.name;
}

class Validate : public testing::TestWithParam<Fault> {
 protected:
  static RankTrace sound() {
    test::Scratch const scratch;
    write_sample(scratch / "x.h5", 0, 1, 0, 10);
    return read_rank_trace(scratch / "x.h5");
  }
};

TEST_P(Validate, FindsThePlantedFaultAlone) {
  auto trace = sound();
  ASSERT_EQ(problems_of(trace), std::vector<std::string>{});
  GetParam().plant(trace);
  auto const problems = problems_of(trace);
  ASSERT_EQ(problems.size(), 1U) << join(problems, "\n");
  EXPECT_NE(problems.front().find(GetParam().finding), std::string::npos) << problems.front();
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Validate,
    testing::Values(
        Fault{"no_rank", [](auto& t) { t.process.erase("rank"); }, "/process lacks"},
        Fault{"no_config", [](auto& t) { t.provenance.erase("config"); }, "/provenance lacks"},
        Fault{"no_status", [](auto& t) { t.tables.at("/status").rows = 0; }, "/status is empty"},
        Fault{"closed_but_running", [](auto& t) { t.status = Status::running; }, "says running"},
        Fault{"step_repeated", [](auto& t) { integers(t, "/steps", "step")[4] = 3; },
              "step does not increase"},
        Fault{"time_goes_back", [](auto& t) { integers(t, "/steps", "t_begin_ns")[0] = 1LL << 62; },
              "goes back"},
        Fault{"phases_do_not_add_up",
              [](auto& t) { integers(t, "/steps", "dur_optimizer_ns")[5] += 600; },
              "do not add up"},
        Fault{"negative_samples", [](auto& t) { integers(t, "/steps", "samples")[5] = -1; },
              "samples negative"},
        Fault{"negative_duration",
              [](auto& t) {
                integers(t, "/steps", "dur_data_ns")[5] -= 10;
                integers(t, "/steps", "dur_forward_ns")[5] += 10;
              },
              "negative duration"},
        Fault{"version_left_out",
              [](auto& t) {
                integers(t, "/ps", "applied_version")[1] = 3;
                integers(t, "/ps", "lag")[1] = 2;
              },
              "versions have a gap"},
        Fault{"version_of_another_chunk",
              [](auto& t) {  // sound if it were of one
                integers(t, "/ps", "chunk")[1] = 1;
                integers(t, "/ps", "applied_version") = {2, 3};
                integers(t, "/ps", "lag") = {1, 2};
              },
              "versions have a gap"},
        Fault{"drop_with_version",
              [](auto& t) {
                integers(t, "/ps", "dropped")[1] = 1;
                integers(t, "/ps", "lag")[1] = 2;
              },
              "versions have a gap"},
        Fault{"applied_though_it_overflowed",
              [](auto& t) { integers(t, "/ps", "overflowed")[1] = 1; },
              "overflowed and was applied"},
        Fault{"lag_of_other_versions", [](auto& t) { integers(t, "/ps", "lag")[1] = 5; },
              "lag is not"},
        Fault{"base_goes_back",
              [](auto& t) {
                integers(t, "/ps", "worker")[1] = 0;
                integers(t, "/ps", "base_version")[1] = -1;
                integers(t, "/ps", "lag")[1] = 2;
              },
              "goes back"},
        Fault{"applied_before_seen", [](auto& t) { integers(t, "/ps", "t_applied_ns")[0] = 15; },
              "out of order"},
        Fault{"span_without_name", [](auto& t) { integers(t, "/spans", "name_id")[0] = 99; },
              "/spans name_id"},
        Fault{"span_in_no_lane", [](auto& t) { integers(t, "/spans", "lane")[0] = 3; },
              "lane unknown"},
        Fault{"span_backwards", [](auto& t) { integers(t, "/spans", "t_end_ns")[0] = 0; },
              "ends before"},
        Fault{"categories_do_not_add_up",
              [](auto& t) {
                auto& allocated = integers(t, "/memory", "allocated_B")[0];
                allocated += allocated / 10 + 1000;
              },
              "categories do not add up"},
        Fault{"event_without_text", [](auto& t) { integers(t, "/events", "text_id")[0] = -1; },
              "/events text_id"}),
    [](auto const& info) { return info.param.name; });

TEST_F(Validate, ManyFaultsOfOneKindStayReadable) {
  auto trace = sound();
  for (auto& samples : integers(trace, "/steps", "samples")) samples = -1;
  auto const problems = problems_of(trace);
  ASSERT_EQ(problems.size(), 4U) << join(problems, "\n");
  EXPECT_NE(problems.back().find("and 7 more"), std::string::npos) << problems.back();
}

}  // namespace
}  // namespace stratagem::trace
