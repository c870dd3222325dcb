#include <algorithm>
#include <iostream>

#include <unistd.h>

#include "app/command.hpp"
#include "app/options.hpp"
#include "base/console/terminal.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "data/own_data.hpp"
#include "data/survey/read_rate.hpp"
#include "data/survey/survey.hpp"
#include "data/tokens/text_survey.hpp"
#include "keys/text_form.hpp"

namespace stratagem::app {
namespace {

constexpr std::int64_t colours = 3;
constexpr std::size_t most_shown = 20;  // damaged images or files

Dataset dataset_of(std::string const& path) {
  // Whatever there is: what to evaluate is the configuration's matter.
  return open_own_data({.dataset = path, .path = path, .seq_len = 1, .holdout = 1});
}

std::int64_t channels_of(Dataset const& dataset) {
  return dataset.channels() > 0 ? dataset.channels() : colours;
}

int threads_of(Options const& options) {
  if (options.has("threads")) return static_cast<int>(options.integer("threads", 1, 1024));
  return std::max(static_cast<int>(usable_cores().size()), 1);
}

/// One line on a terminal, overwritten; nothing elsewhere.
class ReadingLine {
 public:
  ReadingLine(std::string part, std::int64_t images)
      : part_(std::move(part)), images_(images), shown_(shows_to_person(STDERR_FILENO)) {}
  ~ReadingLine() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }
  ReadingLine(ReadingLine const&) = delete;
  ReadingLine& operator=(ReadingLine const&) = delete;

  void tell(std::int64_t done) const {
    if (shown_)
      std::cerr << "\r\x1b[Kreading " << part_ << ": " << format_count(done) << " of "
                << format_count(images_) << std::flush;
  }

 private:
  std::string part_;
  std::int64_t images_;
  bool shown_;
};

Survey survey_of(std::string const& part, SampleSet const& set, std::int64_t channels, Crew& crew) {
  ReadingLine const line(part, set.size());
  return survey(set, channels, crew, [&](std::int64_t done) { line.tell(done); });
}

std::string text_of(Spread const& spread) {
  return spread.least == spread.most
             ? format_count(spread.least)
             : str(format_count(spread.least), " / ", format_count(spread.median), " / ",
                   format_count(spread.most));
}

std::string text_of(std::vector<double> const& values) {
  std::vector<std::string> words;
  for (auto const value : values) words.push_back(format_number(value, 4));
  return join(words, " ");
}

void add_row(Table& table, std::string const& part, Survey const& found) {
  table.add_row({part, format_count(found.images), format_count(found.classes),
                 text_of(found.per_class), text_of(found.height), text_of(found.width),
                 text_of(found.pixels.mean), text_of(found.pixels.stddev),
                 format_count(std::ssize(found.damaged))});
}

Table new_table() {
  return Table({{"part", Align::left},
                {"images"},
                {"classes"},
                {"per class"},
                {"height"},
                {"width"},
                {"mean"},
                {"stddev"},
                {"damaged"}});
}

void report_turned(std::int64_t images) {
  if (images > 0)
    std::cerr
        << "note: " << format_count(images) << (images == 1 ? " image has" : " images have")
        << " an Exif orientation, which is not applied: what is stored is trained on; to turn "
           "images for good, use `exiftran -ai *.jpg` or Pillow's ImageOps.exif_transpose\n";
}

/// Ends with Error(bad_data) if something is; `one`, `several`: what is said of so many.
void report_damage(std::vector<std::string> const& damaged, char const* one, char const* several) {
  if (damaged.empty()) return;
  for (std::size_t i = 0; i < std::min(damaged.size(), most_shown); ++i)
    std::cerr << damaged[i] << '\n';
  throw Error(ExitCode::bad_data, str(damaged.size(), damaged.size() == 1 ? one : several),
              damaged.size() > most_shown ? str("the first ", most_shown, " are listed above") : "",
              "replace them, or remove them");
}

void add_row(Table& table, std::string const& part, SampleSet const& set,
             std::vector<std::string>& damaged) {
  std::int64_t tokens = 0;
  for (auto const& text : set.text->texts()) tokens += text.size();
  ReadingLine const line(part, tokens);
  auto const found = survey_text(set, [&](std::int64_t done) { line.tell(done); });
  auto const bytes = set.text->bytes_per_token();
  table.add_row({part, std::to_string(found.files), format_count(found.tokens),
                 format_count(found.different), format_count(set.text->vocabulary()),
                 bytes > 0 ? format_number(bytes, 2) : "-", format_number(found.entropy, 4)});
  damaged.insert(damaged.end(), found.damaged.begin(), found.damaged.end());
}

ExitCode show_text(Options const& options, Dataset const& dataset) {
  Table table({{"part", Align::left},
               {"files"},
               {"tokens"},
               {"different"},
               {"vocabulary"},
               {"bytes per token"},
               {"entropy"}});
  std::vector<std::string> damaged;
  add_row(table, "train", dataset.train, damaged);
  if (dataset.test.size() > 0) add_row(table, "val", dataset.test, damaged);
  auto const format = options.text("format");
  std::cout << table.render(table_format(format));
  for (auto const& remark : dataset.remarks) std::cerr << "note: " << remark << '\n';
  report_damage(damaged, " file holds tokens that the vocabulary does not have",
                " files hold tokens that the vocabulary does not have");
  if (format != "text") return ExitCode::done;
  std::cout << "\nentropy: the loss of a model that knows how often tokens are, and no more.\n";
  if (dataset.test.size() == 0)
    std::cout << "There is no val part: a run evaluates the last tenth of train, and trains on the "
                 "rest.\n";
  return ExitCode::done;
}

ExitCode show_statistics(Options const& options, std::string const& path) {
  auto const dataset = dataset_of(path);
  if (dataset.train.text) return show_text(options, dataset);
  auto const channels = channels_of(dataset);
  Crew crew(threads_of(options), "decode");
  auto table = new_table();
  auto const train = survey_of("train", dataset.train, channels, crew);
  add_row(table, "train", train);
  auto damaged = train.damaged;
  auto turned = train.turned;
  if (dataset.test.store) {
    auto const val = survey_of("val", dataset.test, channels, crew);
    add_row(table, "val", val);
    damaged.insert(damaged.end(), val.damaged.begin(), val.damaged.end());
    turned += val.turned;
  }
  auto const format = options.text("format");
  std::cout << table.render(table_format(format));
  report_turned(turned);
  for (auto const& remark : dataset.remarks) std::cerr << "note: " << remark << '\n';
  report_damage(damaged, " image cannot be read", " images cannot be read");
  if (format == "text")
    std::cout
        << "\nWhere three numbers are given, they are the least, the middle and the largest.\n"
           "In a configuration:\n\ndata:\n  path: "
        << yaml_quoted(path) << "\n  mean: " << text_of(train.pixels.mean)
        << "\n  stddev: " << text_of(train.pixels.stddev) << '\n';
  return ExitCode::done;
}

ExitCode show_rate(Options const& options, std::string const& path) {
  auto const dataset = dataset_of(path);
  if (dataset.train.text)
    throw Error(ExitCode::usage, "data rate is of images", path + " is text",
                "text needs no such measurement: it is read as it is");
  auto const threads = threads_of(options);
  auto const size = options.integer("input-size", 1, 4096);
  auto const seconds = options.integer("seconds", 1, 3600);
  auto const rate =
      read_rate(dataset, {.channels = channels_of(dataset), .size = size, .threads = threads},
                static_cast<double>(seconds));
  Table table({{"threads"}, {"input size"}, {"images/s"}});
  table.add_row({std::to_string(threads), std::to_string(size), format_number(rate, 1)});
  std::cout << table.render(table_format(options.text("format")));
  return ExitCode::done;
}

}  // namespace

void declare_data(Options& options) {
  options.add_word({.name = "WHAT",
                    .meaning = "stats reads all images: sizes, mean, deviation, damage; or all "
                               "text: tokens, entropy; rate measures how fast images become a "
                               "model's input",
                    .choices = {"stats", "rate"}});
  options.add_word({.name = "PATH", .meaning = "a folder, or a text, as data.path names it"});
  options.add({.name = "threads",
               .value = "N",
               .meaning = "that read images; default: as many as the cores"});
  options.add({.name = "input-size",
               .value = "N",
               .fallback = "224",
               .meaning = "of rate: edge of the model's input [pixels]"});
  options.add(
      {.name = "seconds", .value = "N", .fallback = "5", .meaning = "of rate: how long it reads"});
  options.add({.name = "format",
               .value = "FORMAT",
               .choices = table_formats(),
               .fallback = "text",
               .meaning = "of the table"});
  options.add_note(
      "PATH holds images to train on and to evaluate: train/CLASS/*.jpg (or .png) and "
      "val/CLASS/...; or train*.tar and val*.tar with KEY.jpg and KEY.cls, as WebDataset writes "
      "them; or train*.h5 and val*.h5 with images, bytes [n, height, width, channels], and labels. "
      "analysis/pack_images.py makes the others of the first. Or text: a file, whose bytes are the "
      "tokens, or which holds tokens; or a folder with train*.txt and val*.txt; or with train*.bin "
      "and val*.bin, tokens "
      "as llm.c writes them, which analysis/tokenize_text.py makes of text.");
  options.add_example("stratagem data stats flowers",
                      "whether every image can be read, and data.mean and data.stddev");
  options.add_example("stratagem data stats book.txt", "how long a text is, and its entropy");
  options.add_example("stratagem data rate flowers --threads 4",
                      "images/s that four of data.decode_threads prepare");
}

ExitCode execute_data(Options const& options) {
  auto const& path = options.words()[1];
  return options.words().front() == "stats" ? show_statistics(options, path)
                                            : show_rate(options, path);
}

}  // namespace stratagem::app
