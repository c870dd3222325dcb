#include "app/configuration.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"
#include "config/study_file.hpp"
#include "config/yaml_file.hpp"
#include "data/dataset.hpp"
#include "model/model.hpp"
#include "study/study_directory.hpp"

namespace stratagem::app {

namespace fs = std::filesystem;

void add_overrides(Options& options) {
  options.add({.name = "set",
               .letter = 's',
               .value = "KEY=VALUE",
               .repeats = true,
               .meaning = "replace a key of the file, such as optimizer.lr=0.1"});
}

void add_run_overrides(Options& options) {
  add_overrides(options);
  options.add({.name = "out", .value = "DIR", .meaning = "run directory, instead of run.out"});
  options.add({.name = "max-steps",
               .value = "N",
               .meaning = "stop after N steps, instead of run.max_steps"});
}

KnownNames known_names() {
  KnownNames names;
  for (auto const& entry : dataset_catalogue()) names.datasets.push_back(entry.name);
  for (auto const& entry : model_zoo()) names.models.push_back(entry.name);
  return names;
}

bool is_run_directory(fs::path const& path) {
  std::error_code ignored;
  return fs::exists(path / "config.yaml", ignored) && fs::exists(path / "outcome.json", ignored);
}

std::string read_file(std::string const& path, FileKind wanted) {
  auto const refuse = [&path](std::string const& what, std::string const& cure) {
    throw Error(ExitCode::usage, path + " is " + what, {}, cure);
  };
  if (StudyDirectory::is_one(path))
    refuse("a study directory", wanted == FileKind::study
                                    ? "name the study's file, such as " + path + "/study.yaml"
                                    : "name one of its runs' files, " + path + "/CELL/config.yaml");
  if (is_run_directory(path))
    refuse("a run directory", "name its file " + (fs::path(path) / "config.yaml").string());
  auto text = read_yaml_file(path);
  if (wanted == FileKind::configuration && is_study_text(text))
    refuse("a study, not one run's configuration",
           "run its cells with `stratagem sweep " + path + "`");
  if (wanted == FileKind::study && is_configuration_text(text))
    refuse("one run's configuration, not a study", "start it with `stratagem run " + path + "`");
  return text;
}

RunConfig read_configuration(Options const& options) {
  auto const& file = options.words().front();
  auto overrides = options.texts("set");
  if (options.declares("out") && options.has("out"))
    overrides.push_back("run.out=" + options.text("out"));
  if (options.declares("max-steps") && options.has("max-steps"))
    overrides.push_back("run.max_steps=" + options.text("max-steps"));
  return parse_config(read_file(file, FileKind::configuration), file, overrides, known_names(),
                      process_variable);
}

}  // namespace stratagem::app
