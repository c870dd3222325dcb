#include <algorithm>
#include <filesystem>
#include <iostream>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "config/yaml_file.hpp"
#include "data/tokens/token_bytes.hpp"
#include "offline/text_sampler.hpp"
#include "run_files/checkpoint.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t byte_values = 256;

RunConfig config_of(fs::path const& run) {
  auto const file = run / "config.yaml";
  return parse_config(read_yaml_file(file), file.string(), {}, known_names(), process_variable);
}

double temperature_of(Options const& options) {
  auto const text = options.text("temperature");
  auto const value = parse_number(text);
  if (!value || *value < 0)
    throw Error(ExitCode::usage, "--temperature " + text, "it must be 0 or more");
  return *value;
}

/// What each token stands for; empty where nothing tells, and tokens are shown as numbers.
std::vector<std::string> token_bytes(Options const& options, RunConfig const& config,
                                     std::int64_t vocabulary) {
  if (options.has("tokenizer")) return read_token_bytes(options.text("tokenizer"));
  if (auto const beside = fs::path(config.data.path) / "tokenizer.bin"; fs::exists(beside))
    return read_token_bytes(beside);
  std::vector<std::string> bytes;
  if (vocabulary == byte_values)
    for (int value = 0; value < byte_values; ++value)
      bytes.emplace_back(1, static_cast<char>(value));
  return bytes;
}

std::vector<std::int64_t> prompt_of(Options const& options, std::int64_t vocabulary) {
  std::vector<std::int64_t> prompt;
  if (options.has("prompt-tokens")) {
    for (auto const& word : split(options.text("prompt-tokens"), ' ')) {
      if (word.empty()) continue;
      auto const token = parse_integer(word);
      if (!token || *token < 0 || *token >= vocabulary)
        throw Error(ExitCode::usage, str("--prompt-tokens: ", word),
                    str("the model has tokens 0 to ", vocabulary - 1),
                    "write their numbers with spaces between them");
      prompt.push_back(*token);
    }
  } else if (options.has("prompt")) {
    if (vocabulary != byte_values)
      throw Error(ExitCode::usage, "--prompt is of models whose tokens are bytes",
                  str("this one has ", vocabulary, " tokens"),
                  "give the prompt as numbers, with --prompt-tokens");
    for (unsigned char const byte : options.text("prompt")) prompt.push_back(byte);
  }
  if (prompt.empty()) prompt = {vocabulary == byte_values ? '\n' : 0};
  return prompt;
}

/// Shows tokens on stdout as they come: what they stand for, or their numbers. Code points of UTF-8
/// are shown when they are whole; what cannot become one is shown as U+FFFD.
class TokenPrinter {
 public:
  explicit TokenPrinter(std::vector<std::string> bytes) : bytes_(std::move(bytes)) {}
  void add(std::int64_t token) {
    if (bytes_.empty())
      std::cout << token << ' ';
    else if (static_cast<std::size_t>(token) < bytes_.size())
      pending_ += bytes_[static_cast<std::size_t>(token)];
    show(true);
    std::cout.flush();
  }
  void end() {
    show(false);
    std::cout << '\n';
  }

 private:
  void show(bool more_may_come) {
    constexpr std::size_t longest = 4;            // bytes of a code point
    constexpr unsigned char first_of_two = 0xC2;  // begins one of two bytes or more
    while (!pending_.empty()) {
      auto const size = code_point_size(pending_);
      bool const may_grow = more_may_come && pending_.size() < longest &&
                            static_cast<unsigned char>(pending_[0]) >= first_of_two &&
                            std::all_of(pending_.begin() + 1, pending_.end(), is_continuation);
      if (size == 0 && may_grow) return;
      std::cout << (size > 0 ? pending_.substr(0, size) : "\xef\xbf\xbd");
      pending_.erase(0, std::max<std::size_t>(size, 1));
    }
  }

  std::vector<std::string> bytes_;
  std::string pending_;
};

}  // namespace

void declare_sample(Options& options) {
  options.add_word({.name = "DIR", .meaning = "the run directory of a model of text"});
  options.add(
      {.name = "prompt",
       .value = "TEXT",
       .meaning = "what is continued, where tokens are bytes; default: the begin of a line"});
  options.add({.name = "prompt-tokens",
               .value = "NUMBERS",
               .meaning = "the same as tokens, separated by spaces; default: token 0"});
  options.add({.name = "tokens", .value = "N", .fallback = "200", .meaning = "to add"});
  options.add({.name = "temperature",
               .value = "X",
               .fallback = "0.8",
               .meaning = "below 1: likely tokens become likelier; 0: always the likeliest"});
  options.add(
      {.name = "top-k", .value = "K", .fallback = "0", .meaning = "only the K likeliest; 0: all"});
  options.add({.name = "seed", .value = "N", .fallback = "1", .meaning = "another continuation"});
  options.add({.name = "tokenizer",
               .value = "FILE",
               .meaning =
                   "what tokens stand for, as llm.c writes it; default: tokenizer.bin beside "
                   "the data"});
  options.add_example("stratagem sample runs/king-james --prompt 'In the beginning'",
                      "200 more characters");
}

ExitCode execute_sample(Options const& options) {
  fs::path const run = options.words().front();
  auto const common = options.common();
  Log log(0, true, common.level, common.color);
  auto const config = config_of(run);
  auto const checkpoint = newest_checkpoint(run, log);
  if (!checkpoint)
    throw Error(ExitCode::checkpoint, "no checkpoint in " + run.string(),
                "only a saved model can be continued with", "run it with checkpoint.at_end");
  warn_of_later_steps(run, *checkpoint, log);
  TextSampler sampler(config, checkpoint->weights());
  TokenPrinter printer(token_bytes(options, config, sampler.vocabulary()));
  auto text = prompt_of(options, sampler.vocabulary());
  Sampling const sampling{
      .temperature = temperature_of(options),
      .top_k = options.integer("top-k", 0, sampler.vocabulary()),
      .seed = static_cast<std::uint64_t>(options.integer("seed", 0, std::int64_t{1} << 53))};
  for (auto const token : text) printer.add(token);
  for (auto left = options.integer("tokens", 1, 1'000'000); left > 0; --left) {
    text.push_back(sampler.next(text, sampling));
    printer.add(text.back());
  }
  printer.end();
  return ExitCode::done;
}

}  // namespace stratagem::app
