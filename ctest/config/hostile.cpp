#include <algorithm>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/random.hpp"
#include "config/keys.hpp"
#include "config/print.hpp"
#include "config/support.hpp"
#include "support/child.hpp"

namespace stratagem {
namespace {

std::string const specials = "{}[]:,#&*!|>'\"%@`~-?\n\t $\\<=.0a\xff";

/// The valid file with up to four pieces changed, removed, doubled or put in.
std::string mutate(std::string text, CounterRandom const& random, std::uint64_t trial) {
  std::uint64_t at = 0;
  for (auto changes = 1 + random.word(at++, trial) % 4; changes > 0; --changes) {
    auto const position = random.word(at++, trial) % (text.size() + 1);
    char const special = specials[random.word(at++, trial) % specials.size()];
    switch (random.word(at++, trial) % 4) {
      case 0:
        text.insert(position, 1, special);
        break;
      case 1:
        text.replace(position, 1, 1, special);
        break;
      case 2:
        text.erase(position, random.word(at++, trial) % 30);
        break;
      default:
        text.insert(position, text.substr(position, random.word(at++, trial) % 60));
    }
  }
  return text;
}

/// Accepted, or refused with a message; never anything else.
TEST(Hostile, MutatedFilesAreAcceptedOrExplained) {
  auto const valid =
      print_config(test::parse(test::minimal, {"expect.ranks=2", "run.name=a \"b\""}));
  CounterRandom const random(1, "mutations");
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    auto const text = mutate(valid, random, trial);
    auto const lines = test::problems(text);
    ++(lines.empty() ? accepted : refused);
    for (auto const& line : lines)
      ASSERT_TRUE(line.starts_with("c.yaml:") || line.starts_with("and ")) << line << "\n" << text;
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 1000);
}

/// Every key of every strategy, given texts that nobody means: what is accepted prints as a file
/// that says the same again, what is not is told with the key.
TEST(Hostile, OddTextsForEveryKey) {
  std::string const zero(1, '\0');
  std::vector<std::string> const odd{"",
                                     " ",
                                     "~",
                                     "true",
                                     "-0",
                                     "1e400",
                                     "nan",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "1e308",
                                     "\"",
                                     "\\\"",
                                     "a\nb",
                                     "\x7f",
                                     "\xff",
                                     "a" + zero + "b",
                                     "\xf0\x9f\x92\xa5",
                                     "${HOME}",
                                     "${",
                                     "*a",
                                     "!!int 1",
                                     "#x",
                                     "a: b",
                                     "[1, 2]",
                                     "---",
                                     "../../etc",
                                     "$(id)",
                                     "a=b"};
  int accepted = 0, refused = 0;
  for (auto const* strategy : {"serial", "ddp", "fsdp", "local", "gossip", "fedavg", "ps"}) {
    auto const base = std::string("strategy.name=") + strategy;
    for (auto const& key : describe_keys(test::names())) {
      bool const once = section_of(key.path) == "strategy" || strategy == std::string("ddp");
      if (!once || key.path == "strategy.name" || !key.belongs_to({{"strategy", strategy}}))
        continue;
      for (auto const& text : odd) {
        auto const given = key.path + "=" + text;
        auto const lines = test::problems(test::minimal, {base, given});
        ++(lines.empty() ? accepted : refused);
        if (!lines.empty()) {
          EXPECT_TRUE(lines.front().find(key.path) != std::string::npos ||
                      lines.front().find("UTF-8") != std::string::npos)
              << given << "\n"
              << lines.front();
          continue;
        }
        auto const printed = print_config(test::parse(test::minimal, {base, given}));
        ASSERT_EQ(test::problems(printed), std::vector<std::string>{}) << given << "\n" << printed;
        ASSERT_EQ(print_config(test::parse(printed)), printed) << given;
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

TEST(Hostile, EveryBeginningOfAFile) {
  auto const valid = print_config(test::parse(test::minimal));
  for (std::size_t size = 0; size < valid.size(); ++size) {
    auto const lines = test::problems(valid.substr(0, size));
    ASSERT_TRUE(!lines.empty() || size > valid.find("strategy:")) << size;
  }
}

/// Of any kind, and of the kinds that mean something in YAML.
TEST(Hostile, RandomBytes) {
  CounterRandom const random(1, "bytes");
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    std::string any, special;
    for (std::uint32_t i = 0; i < 1 + trial % 50; ++i) {
      auto const word = random.word(i, trial);
      any += static_cast<char>(word);
      special += specials[word % (specials.size() - 1)];  // all but the last, which is no UTF-8
    }
    ASSERT_FALSE(test::problems(any).empty());
    ASSERT_FALSE(test::problems(special).empty()) << special;
  }
}

TEST(Hostile, DepthAndSizeAreLimited) {
  auto const repeat = [](std::string const& piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += piece;
    return text;
  };
  for (std::string const piece :
       {"[", "{", "{a: ", "- ", "? ", "!", "&a ", "a: [", "\"", "#", "\n", "a:\n", "---\n"})
    EXPECT_FALSE(test::problems(repeat(piece, 30000)).empty()) << piece;
  EXPECT_EQ(test::problems(test::minimal + repeat(" ", 1 << 20)).front(),
            str("c.yaml:1:1: the file has ", (1 << 20) + test::minimal.size(),
                " bytes, more than 1.00 MiB"));
}

TEST(Hostile, AliasesDoNotMultiply) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'z'; ++c)
    bomb += str(c, ": &", c, " [*", char(c - 1), ", *", char(c - 1), ", *", char(c - 1), "]\n");
  auto const lines = test::problems(bomb);
  EXPECT_EQ(std::ranges::count(lines, "c.yaml:1:4: a: a list; one value is expected"), 1);
  EXPECT_EQ(lines.size(), 3 + 25U);
}

/// Of this process: so much more memory [B], so much more time [s].
void limit(std::size_t bytes, rlim_t seconds) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  auto const space = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  rlimit const memory{space, space}, cpu{seconds, seconds};
  ::setrlimit(RLIMIT_AS, &memory);
  ::setrlimit(RLIMIT_CPU, &cpu);
}

/// A file of the largest size that is looked at, full of one thing.
std::string filled_with(std::string const& piece, std::string text = "") {
  text.reserve(1 << 20);
  while (text.size() + piece.size() < 1 << 20) text += piece;
  return text;
}

/// Bounded however the text is made: what it takes to refuse a file, beside what this process had.
TEST(Hostile, RefusingTakesLittleTimeAndMemory) {
  std::string keys, sections, anchors;
  for (int i = 0; keys.size() < 1 << 20; ++i) {
    keys += str("k", i, ": 1\n");
    sections += str("s", i, ": {a: {}, b: 1, a: 2}\n");
    anchors += str("a", i, ": &x", i, " [*x", i, "]\n");
  }
  auto const cut = [](std::string text) { return text.substr(0, (1 << 20) - 1); };
  std::map<std::string, std::string> const texts{
      {"keys", cut(keys)},
      {"sections", cut(sections)},
      {"anchors", cut(anchors)},
      {"one key twice", filled_with("run: {seed: 1}\n")},
      {"one long value", "run: {seed: " + filled_with("1") + "}"},
      {"one long word", test::minimal + "optimizer: {schedule: " + filled_with("constant") + "}"},
      {"one long key", filled_with("x")},
      {"variables", "run: {name: \"" + filled_with("${A}") + "\"}"},
      {"open lists", filled_with("[")},
      {"open maps", filled_with("{a: ")},
      {"nested by dashes", filled_with("- ")},
      {"items", filled_with("- x\n")},
      {"documents", filled_with("---\n")},
      {"quotes", filled_with("\"\\\"\"\n")},
      {"line ends", filled_with("\n")},
      {"NUL", std::string(1 << 20, '\0')},
      {"too long", std::string(64 << 20, 'x')},
  };
  for (auto const& [name, text] : texts) {
    test::Child child([&text = text] {
      limit(64 << 20, 2);
      return test::problems(text).empty() ? 1 : 0;
    });
    EXPECT_EQ(child.wait(), 0) << name;
  }
}

TEST(Hostile, AReportHasABoundedLength) {
  std::string text = test::minimal;
  for (int i = 0; i < 5000; ++i) text += str("unknown", i, ": 1\n");
  auto const lines = test::problems(text);
  EXPECT_EQ(lines.size(), 101U);
  EXPECT_EQ(lines.back(), "and 4900 more");
}

}  // namespace
}  // namespace stratagem
