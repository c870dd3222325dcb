#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "config/keys.hpp"
#include "plan/run_config.hpp"

namespace stratagem::app {

/// What the words CONFIG and CONFIG|STUDY mean.
inline constexpr char config_file[] = "a YAML file, such as inputs/smoke/digits-lenet-ddp.yaml";
inline constexpr char config_or_study[] =
    "a YAML file of a run, such as inputs/smoke/digits-lenet-ddp.yaml, or of a study";

/// Declares -s.
void add_overrides(Options& options);
/// Declares -s and the overrides of a run that have options of their own: --out, --max-steps.
void add_run_overrides(Options& options);

/// Whether a run was started there.
bool is_run_directory(std::filesystem::path const& path);

enum class FileKind { configuration, study };

/// A YAML file's text. Error(usage) where it cannot be read, or is of the other kind or a
/// directory, with what to name or start instead.
std::string read_file(std::string const& path, FileKind wanted);

/// The file that is the first word, with all overrides. Error(usage) listing all problems.
RunConfig read_configuration(Options const& options);

/// The datasets and models there are.
KnownNames known_names();

}  // namespace stratagem::app
