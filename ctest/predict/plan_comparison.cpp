#include "predict/plan_comparison.hpp"

#include <algorithm>
#include <random>
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "predict/reports/comparison_report.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

RunConfig lenet_on_digits() {
  RunConfig config;
  config.data = {.dataset = "synthetic-digits", .global_batch = 12};
  config.model = {.name = "lenet"};
  return config;
}

Comparison compare(RunConfig const& config, int workers) {
  auto const model = make_model(config.model, input_shape(config));
  return compare_strategies(config, model, workers, nullptr);
}

ComparedPlan const& named(Comparison const& compared, std::string_view name) {
  auto const found = std::ranges::find(compared.strategies, name, &ComparedPlan::name);
  EXPECT_NE(found, compared.strategies.end()) << name;
  return *found;
}

/// Nothing reserved.
Room room_of(std::int64_t bytes) {
  return {.bytes = bytes, .reserve = 0};
}

/// As if a pass held so much.
Comparison with_activations(Comparison compared, std::int64_t bytes) {
  for (auto& one : compared.strategies)
    if (one.forecast) one.forecast->activations = ActivationUse{.kept = bytes / 2, .peak = bytes};
  return compared;
}

/// With its lines joined.
std::string text_of(Comparison const& compared, Room const& room = {}) {
  return join(split(comparison_text(compared, room), '\n'), " ");
}

void expect_words(std::string const& text, std::vector<char const*> const& words) {
  for (auto const* word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

std::size_t count(std::string const& text, std::string const& word) {
  std::size_t number = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++number;
  return number;
}

TEST(PlanComparison, HasEveryStrategyWithTheSameWorkers) {
  auto const compared = compare(lenet_on_digits(), 3);
  std::vector<std::string> names;
  for (auto const& one : compared.strategies) {
    names.push_back(one.name);
    ASSERT_TRUE(one.forecast) << one.problem;
    EXPECT_EQ(one.forecast->plan.strategy.shares.workers, 3) << one.name;
    EXPECT_EQ(one.forecast->plan.ranks, one.name.starts_with("ps") ? 4 : 3);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"ddp", "fsdp optimizer", "fsdp gradients", "fsdp full",
                                             "local", "gossip", "fedavg", "ps sync", "ps async"}));
  expect_words(text_of(compared), {"ps takes 4 ranks: 3 workers and 1 server, which holds "});
}

TEST(PlanComparison, AServerSendsToAllWorkers) {
  auto const compared = compare(lenet_on_digits(), 4);
  auto const& ps = named(compared, "ps sync");
  EXPECT_EQ(ps.busiest_bytes(), 4 * ps.forecast->plan.strategy.traffic.bytes_sent);
  auto config = lenet_on_digits();
  config.strategy = PsConfig{.servers = 2, .chunk_mb = 0.25};
  auto const two = compare(config, 4);
  EXPECT_LT(named(two, "ps sync").busiest_bytes(), ps.busiest_bytes());
}

TEST(PlanComparison, GivesAllWhatMeansTheSame) {
  auto config = lenet_on_digits();
  config.strategy = DdpConfig{.micro_batches = 2};
  auto const compared = compare(config, 2);
  EXPECT_EQ(compared.ddp().forecast->plan.samples_per_pass, 3);
  EXPECT_EQ(named(compared, "fsdp full").forecast->plan.samples_per_pass, 3);
  EXPECT_EQ(named(compared, "ps async").forecast->plan.samples_per_pass, 3);
}

TEST(PlanComparison, IsTheSameWhicheverStrategyIsNamed) {
  std::mt19937 random(46);
  auto const below = [&](std::uint32_t count) { return random() % count; };
  for (int round = 0; round < 200; ++round) {
    auto config = lenet_on_digits();
    config.data.global_batch = 48;
    auto const workers = static_cast<int>(2 + below(3));
    auto const micro_batches = 1 << below(3);
    Compression const code{.code = static_cast<Code>(below(8)),
                           .rounding = static_cast<Rounding>(below(2))};
    std::vector<std::string> tables;
    for (StrategyConfig const& strategy : std::vector<StrategyConfig>{
             DdpConfig{.micro_batches = micro_batches, .compression = code},
             FsdpConfig{.shard = static_cast<Shard>(below(3)),
             .micro_batches = micro_batches,
             .compression = code},
             PsConfig{.compression = code, .micro_batches = micro_batches}}) {
      config.strategy = strategy;
      tables.push_back(comparison_text(compare(config, workers), {}));
    }
    EXPECT_EQ(tables[0], tables[1]) << round;
    EXPECT_EQ(tables[0], tables[2]) << round;
  }
}

TEST(PlanComparison, TellsWhatAStrategyDoesNotHave) {
  auto config = lenet_on_digits();
  config.strategy = DdpConfig{.overlap = false, .compression = {.code = Code::top_k, .ratio = 0.1}};
  auto const compared = compare(config, 2);
  EXPECT_TRUE(compared.ddp().without.empty());
  EXPECT_EQ(named(compared, "fsdp full").without, (std::vector<std::string>{"compression: top_k"}));
  EXPECT_EQ(named(compared, "ps sync").without,
            (std::vector<std::string>{"overlap: false", "compression: top_k"}));
  expect_words(text_of(compared), {"without compression: top_k", "without overlap: false"});
}

TEST(PlanComparison, ChoosesAmongThoseThatHaveTheCode) {
  auto config = lenet_on_digits();
  config.strategy = DdpConfig{.compression = {.code = Code::int8}};
  auto const in_blocks = compare(config, 2);
  EXPECT_TRUE(named(in_blocks, "fsdp full").trains_alike());
  EXPECT_TRUE(named(in_blocks, "ps sync").trains_alike());
  EXPECT_FALSE(named(in_blocks, "ps async").trains_alike());
  EXPECT_NE(recommended(in_blocks, {.bytes = 24 * gib}), nullptr);
  expect_words(text_of(in_blocks), {"Take "});

  config.strategy = DdpConfig{.overlap = false, .compression = {.code = Code::top_k, .ratio = 0.1}};
  auto const sparse = compare(config, 2);
  EXPECT_FALSE(named(sparse, "fsdp full").trains_alike());
  EXPECT_EQ(recommended(sparse, {}), &sparse.ddp());

  config.strategy = DdpConfig{.overlap = false};
  EXPECT_TRUE(named(compare(config, 2), "ps sync").trains_alike()) << "as fast or not";
}

TEST(PlanComparison, PraisesTheTrafficOnlyOfThoseThatTrainAlike) {
  auto const text = text_of(compare(lenet_on_digits(), 4));
  expect_words(text, {"no other that trains alike sends over 1 % less from its busiest rank"});
  EXPECT_EQ(text.find("no other sends less"), text.npos);
}

TEST(PlanComparison, NeverSaysMoreOfANegativeNumber) {
  auto config = lenet_on_digits();
  for (auto const code : {Code::none, Code::bf16, Code::int8, Code::sign})
    for (auto const precision : {Precision::fp32, Precision::bf16}) {
      config.precision = {.compute = precision, .loss_scale = LossScale::none};
      config.strategy = DdpConfig{.compression = {.code = code}};
      auto const text = text_of(with_activations(compare(config, 3), 1 << 20));
      EXPECT_FALSE(std::regex_search(text, std::regex("sends -[0-9]"))) << text;
    }
}

TEST(PlanComparison, RecommendsTheSimplestUntilMemoryIsShort) {
  auto const compared = compare(lenet_on_digits(), 4);
  auto const needed = compared.ddp().forecast->peak_bytes();
  ASSERT_EQ(recommended(compared, {}), &compared.ddp());
  EXPECT_EQ(recommended(compared, room_of(needed)), &compared.ddp());
  auto const* sharded = recommended(compared, room_of(needed - 1));
  ASSERT_NE(sharded, nullptr);
  EXPECT_LT(sharded->forecast->peak_bytes(), needed);
  EXPECT_EQ(recommended(compared, {.bytes = needed, .reserve = 1}), sharded);
  EXPECT_EQ(recommended(compared, room_of(1)), nullptr);
  expect_words(text_of(compared, room_of(1)),
               {"None that trains like one process fits: ps sync lacks "});
  auto const document = nlohmann::json::parse(comparison_json(compared, room_of(1)));
  EXPECT_TRUE(document.at("recommended").is_null());
  for (auto const& entry : document.at("strategies")) EXPECT_FALSE(entry.at("fits")) << entry;
}

TEST(PlanComparison, RecommendsTheFastestWhereTimesAreKnown) {
  auto compared = compare(lenet_on_digits(), 4);
  double step_s = 1;
  for (auto& one : compared.strategies) {
    if (one.name != "local" && one.name != "gossip" && one.name != "fedavg") step_s *= 0.97;
    one.forecast->time = PredictedTime{.step = {.compute_s = step_s}, .ratio_error = 0.05};
  }
  // 0.97, 0.94, 0.91, 0.89, the same under local, gossip and fedavg, 0.86 and, under async, 0.83.
  EXPECT_EQ(recommended(compared, {}), &named(compared, "fsdp full"))
      << "the simplest that is not told apart from the shortest";
  expect_words(
      text_of(compared),
      {"Take fsdp full: its step is predicted to take 885.3 ms; that of ps sync, 858.7 ms, is "
       "the shortest of those that train alike, but predicted steps that are so close are "
       "not told apart, and fsdp full is simpler",
       "ps async would take", "but trains otherwise"});
  auto const document = nlohmann::json::parse(comparison_json(compared, {}));
  EXPECT_DOUBLE_EQ(document.at("strategies")[0].at("time").at("step_s"), 0.97);
  EXPECT_DOUBLE_EQ(document.at("strategies")[0].at("time").at("ratio_error"), 0.05);

  for (auto& one : compared.strategies) one.forecast->time->ratio_error = 0.2;
  EXPECT_EQ(recommended(compared, {}), &compared.ddp());

  compared.strategies[1].forecast->time->ratio_error.reset();  // as on a GPU
  EXPECT_EQ(recommended(compared, {}), &compared.ddp()) << "by bytes";
  expect_words(text_of(compared), {"sends over 1 % less", "times do not tell them apart"});

  compared.strategies[1].forecast->time.reset();
  compared.strategies[1].forecast->time_problem = "was not measured";
  EXPECT_EQ(recommended(compared, {}), &compared.ddp()) << "by bytes, as not all are known";
  expect_words(text_of(compared), {"fsdp optimizer: no time prediction: was not measured"});
}

TEST(PlanComparison, TellsAProblemOfAllOnce) {
  auto compared = compare(lenet_on_digits(), 4);
  for (auto& one : compared.strategies) one.forecast->time_problem = "was not measured";
  auto const text = text_of(compared);
  EXPECT_EQ(count(text, "was not measured"), 1U) << text;
  EXPECT_NE(text.find(" no time prediction: was not measured"), text.npos) << text;
}

TEST(PlanComparison, NamesStrategiesThatCannotDoTheRun) {
  auto config = lenet_on_digits();
  config.strategy = PsConfig{.servers = 100};
  auto const compared = compare(config, 2);
  auto const& ps = named(compared, "ps async");
  EXPECT_FALSE(ps.forecast);
  EXPECT_NE(ps.problem.find("servers"), std::string::npos) << ps.problem;
  EXPECT_EQ(count(text_of(compared), ps.problem), 1U) << text_of(compared);
  EXPECT_EQ(recommended(compared, {}), &compared.ddp());
}

TEST(PlanComparison, RefusesOnceWhatNoStrategyCanDo) {
  auto config = lenet_on_digits();
  config.data.global_batch = 128;
  try {
    compare(config, 6);
    FAIL() << "128 samples on 6 workers";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(count(error.what(), "cannot be divided"), 1U) << error.what();
    EXPECT_NE(std::string(error.what()).find("126 and 132"), std::string::npos) << error.what();
  }
}

TEST(PlanComparison, AnswersWhetherFsdpWouldHelp) {
  auto vgg16 = lenet_on_digits();
  vgg16.data = {.dataset = "synthetic-shapes", .global_batch = 8, .input_size = 32};
  vgg16.model = {.name = "vgg16"};
  auto const large = compare(vgg16, 4);
  expect_words(text_of(with_activations(large, 1 << 20)),
               {"Would FSDP help? Yes: shard full saves 8", " of 1.50 GiB per rank (5",
                " %) and sends 4", " % more."});

  auto const busy = with_activations(large, 20 * gib);
  expect_words(text_of(busy), {"Would FSDP help? Hardly: shard full saves 8",
                               "activations and workspace are 93 % of a rank's memory",
                               "which FSDP does not divide"});

  expect_words(text_of(large), {"Would FSDP help? That depends on activations", "of what lasts"});

  auto const small = with_activations(compare(lenet_on_digits(), 2), 1 << 20);
  expect_words(text_of(small), {"Would FSDP help? No: shard full holds ", " more than the "});
  EXPECT_EQ(text_of(compare(lenet_on_digits(), 1)).find("Would FSDP"), std::string::npos);
}

/// With numbers that no run has, equal ones and none among them.
Comparison at_random(Comparison compared, std::mt19937& random) {
  auto const below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random()) % count;
  };
  bool const timed = below(2) == 0, measured = below(4) > 0;
  for (auto& one : compared.strategies) {
    one.forecast->activations = ActivationUse{.peak = (1 + below(40)) << 26};
    auto& strategy = one.forecast->plan.strategy;
    strategy.traffic.most_bytes_sent = below(std::int64_t{1} << below(31));
    strategy.numbers.of_serial = below(4) > 0;
    one.same_numbers = below(8) > 0;
    if (timed && below(20) > 0)
      one.forecast->time =
          PredictedTime{.step = {.compute_s = 0.001 * static_cast<double>(1 + below(60))}};
    if (one.forecast->time && measured)
      one.forecast->time->ratio_error = 0.1 * static_cast<double>(1 + below(4));
    if (below(6) == 0) one.forecast.reset();
  }
  return compared;
}

double step_s(ComparedPlan const& one) {
  return one.forecast->time->step.total();
}
bool fits_and_trains_alike(ComparedPlan const& one, Room const& room) {
  return one.forecast && one.trains_alike() && room.fits(one.forecast->peak_bytes());
}

/// Whether what is said of the chosen one is so, by each of the others.
void check_advice(Comparison const& compared, Room const& room, std::string const& text) {
  std::smatch said;
  if (!std::regex_search(text, said, std::regex("Take ([a-z ]+): (its step|no other)"))) {
    for (auto const& one : compared.strategies) EXPECT_FALSE(fits_and_trains_alike(one, room));
    EXPECT_NE(text.find("None that trains like one process"), text.npos);
    return;
  }
  auto const& best = named(compared, said[1].str());
  ASSERT_TRUE(fits_and_trains_alike(best, room));
  std::smatch shorter;
  bool const tied = std::regex_search(text, shorter, std::regex("; that of ([a-z ]+), "));
  auto const& shortest = tied ? named(compared, shorter[1].str()) : best;
  bool before = true;
  for (auto const& one : compared.strategies) {
    before = before && &one != &best;
    if (!one.forecast) continue;
    bool const told = text.find("; " + one.name + " would take ") != text.npos;
    if (said[2] == "no other") {
      if (!fits_and_trains_alike(one, room)) continue;
      EXPECT_GE(1.01 * static_cast<double>(one.busiest_bytes()),
                0.999999 * static_cast<double>(best.busiest_bytes()))
          << one.name;
    } else if (fits_and_trains_alike(one, room)) {
      EXPECT_GE(step_s(one), step_s(shortest)) << one.name;
      EXPECT_FALSE(told) << one.name;
      EXPECT_FALSE(tied && before && step_s(one) <= 1.0999 * step_s(shortest)) << one.name;
    } else if (told) {
      EXPECT_FALSE(one.trains_alike()) << one.name;
      EXPECT_LT(1.0999 * step_s(one), step_s(best)) << one.name;
      EXPECT_TRUE(room.fits(one.forecast->peak_bytes())) << one.name;
    }
  }
  EXPECT_TRUE(!tied || step_s(best) <= 1.4001 * step_s(shortest));
}

/// Whether the answer, its amounts and its percentages are those of the table.
void check_fsdp(Comparison const& compared, std::string const& text) {
  auto const at = text.find("Would FSDP help?");
  auto const &ddp = compared.ddp(), &full = named(compared, "fsdp full");
  ASSERT_EQ(at != text.npos, ddp.forecast && full.forecast);
  if (at == text.npos) return;
  std::smatch said;
  std::regex const words(
      "help\\? (Yes|Hardly|No): shard full (saves|holds) ([0-9.]+ [KMG]?i?B)( more than the | of )"
      "([0-9.]+ [KMG]?i?B) per rank[a-z ]*\\((x?[0-9,]+)( %)?\\) and sends (x?)([0-9,]+|as much)");
  ASSERT_TRUE(std::regex_search(text, said, words)) << text;
  auto const held = static_cast<double>(ddp.forecast->peak_bytes());
  auto const saved = held - static_cast<double>(full.forecast->peak_bytes());
  EXPECT_EQ(said[1], saved < 0 ? "No" : saved < 0.1 * held ? "Hardly" : "Yes");
  EXPECT_EQ(said[2], saved < 0 ? "holds" : "saves");
  EXPECT_EQ(said[3], format_bytes(std::abs(saved)));
  EXPECT_EQ(said[5], format_bytes(held));
  auto const sent = static_cast<double>(full.busiest_bytes());
  auto const usual = static_cast<double>(ddp.busiest_bytes());
  bool const less = text.find(" % less", at) < text.find("Take ", at);
  bool const more = text.find(" % more", at) < text.find("Take ", at);
  if (usual == 0) return;
  EXPECT_EQ(less, sent < 0.995 * usual) << sent << " and " << usual;
  EXPECT_EQ(more, sent >= 1.005 * usual && sent <= 11 * usual) << sent << " and " << usual;
  EXPECT_EQ(said[8] == "x", sent > 11 * usual) << sent << " and " << usual;
}

TEST(PlanComparison, SaysNothingThatItsNumbersDoNot) {
  std::mt19937 random(47);
  auto const base = compare(lenet_on_digits(), 4);
  for (int round = 0; round < 2000; ++round) {
    auto const compared = at_random(base, random);
    Room const room =
        round % 3 == 0 ? Room{} : room_of(static_cast<std::int64_t>(1 + random() % 40) << 26);
    auto const text = text_of(compared, room);
    SCOPED_TRACE(str("round ", round, ": ", comparison_text(compared, room)));
    check_advice(compared, room, text);
    check_fsdp(compared, text);
    EXPECT_FALSE(std::regex_search(text, std::regex("sends -[0-9]|-0 %|\\(-"))) << text;
    if (HasFailure()) break;
  }
}

TEST(PlanComparison, SaysWhatMakesARankHoldLess) {
  auto config = lenet_on_digits();
  config.data = {.dataset = "synthetic-shapes", .global_batch = 64, .input_size = 32};
  config.model = {.name = "resnet50"};
  auto const model = make_model(config.model, input_shape(config));
  ActivationPredictor predictor;
  auto const small = compare_strategies(config, model, 2, &predictor, room_of(192 << 20));
  EXPECT_EQ(small.saving_strategy, smallest(small)->name);
  auto const needed = smallest(small)->forecast->peak_bytes();
  ASSERT_FALSE(small.savings.empty());
  auto price = Saving::Price::nothing;
  for (auto const& saving : small.savings) {
    EXPECT_LE(saving.peak_bytes, needed - needed / 100) << saving.change;
    EXPECT_GE(saving.price, price) << saving.change << ": what costs no accuracy comes first";
    price = saving.price;
  }
  auto const told = text_of(small, room_of(192 << 20));
  expect_words(told, {"What makes a rank of ps sync hold less:", "BatchNorm sees",
                      "a step takes 64 images, 32 per rank; BatchNorm sees 32 of them"});

  // What is told of a change is what a plan of the changed run says.
  config.data.global_batch = 512;
  auto const busy = compare_strategies(config, model, 2, &predictor);
  ASSERT_EQ(busy.saving_strategy, "ddp");
  for (auto const& saving : busy.savings) {
    auto changed = config;
    int workers = 2;
    if (saving.change == "model.recompute: all") changed.model.recompute = {.every = 1};
    if (saving.change == "micro_batches: 8") changed.strategy = DdpConfig{.micro_batches = 8};
    if (saving.change == "--ranks 4") workers = 4;
    if (saving.change == "global_batch: 256") changed.data.global_batch = 256;
    auto const as_told = compare_strategies(changed, model, workers, &predictor);
    EXPECT_EQ(as_told.ddp().forecast->peak_bytes(), saving.peak_bytes) << saving.change;
  }
  auto const document = nlohmann::json::parse(comparison_json(busy, {}));
  EXPECT_EQ(document.at("savings").at("changes").size(), busy.savings.size());

  config.model = {.name = "vgg16"};
  auto const vgg16 = make_model(config.model, input_shape(config));
  EXPECT_FALSE(vgg16.mixes_samples());
  EXPECT_TRUE(model.mixes_samples());
}

TEST(PlanComparison, FitsIntoATerminalOf80Columns) {
  auto const compared = with_activations(compare(lenet_on_digits(), 4), 1023 << 20);
  for (auto const& line : split(comparison_text(compared, {.bytes = 24 * gib}), '\n'))
    EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace stratagem
