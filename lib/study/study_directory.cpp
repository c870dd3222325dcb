#include "study/study_directory.hpp"

#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/build_info.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/directory_lock.hpp"
#include "base/files/file.hpp"
#include "base/hash/sha256.hpp"
#include "base/text.hpp"
#include "run_files/run_directory.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int schema = 1;

json description(Study const& study) {
  auto const& info = build_info();
  return {{"schema", schema},
          {"name", study.name},
          {"file", study.file},
          {"sha256", sha256(std::as_bytes(std::span(study.text)))},
          {"overrides", study.overrides},
          {"cells", study.cells.size()},
          {"version", info.version},
          {"git_sha", info.git_sha},
          {"created", utc_time(wall_ns())},
          {"created_by", who_and_where()}};
}

/// study.json. Error(usage) if it is missing, damaged, or of another version.
json read_description(fs::path const& path) {
  auto const file = path / "study.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))
    throw Error(ExitCode::usage, path.string() + " is not a study directory",
                "there is no study.json in it", "name one that `stratagem sweep` wrote");
  auto const cure = "name another folder, or take the version that wrote it";
  try {
    auto document = json::parse(read_text(file, ExitCode::io));
    if (document.at("schema") != schema)
      throw Error(ExitCode::usage,
                  str(path.string(), " is a study directory of schema ",
                      document.at("schema").dump(), ", not ", schema),
                  {}, cure);
    return document;
  } catch (json::exception const& problem) {
    throw Error(ExitCode::usage, file.string() + " is damaged", problem.what(), cure);
  }
}

/// "-s optimizer.lr=0.1 -s run.epochs=2".
std::string overrides_text(json const& overrides) {
  std::vector<std::string> given;
  for (auto const& text : overrides) given.push_back("-s " + text.get<std::string>());
  return given.empty() ? "without -s" : "with " + join(given, " ");
}

/// Compares two studies by what study.json records.
std::string difference(std::string const& key, json const& there, json const& wanted) {
  if (key == "overrides" && there.is_array())
    return str("it was made ", overrides_text(there), ", not ", overrides_text(wanted));
  if (key == "sha256") return "its study file had another content";
  return str("its ", key, " is ", there.dump(), ", not ", wanted.dump());
}

/// Throws unless the folder was made for the same study.
void check_same(fs::path const& path, Study const& study, std::vector<CellEntry> const& cells) {
  auto const there = read_description(path);
  auto const wanted = description(study);
  auto const refuse = [&](std::string const& why) {
    throw Error(ExitCode::usage, path.string() + " holds another study", why,
                "name another folder with --out");
  };
  for (auto const* key : {"name", "sha256", "overrides"})
    if (auto const& was = there.value(key, json()); was != wanted.at(key))
      refuse(difference(key, was, wanted.at(key)));
  if (read_text(path / "cells.csv", ExitCode::io) != cells_csv(cells))
    refuse("its cells.csv is not what this version makes of the study");
}

}  // namespace

StudyDirectory StudyDirectory::prepare(fs::path path, Study const& study) {
  std::vector<CellEntry> cells;
  for (auto const& cell : study.cells) cells.push_back(cell.entry);
  if (is_one(path)) {
    check_same(path, study, cells);
  } else {
    for (auto const* file : {"study.yaml", "cells.csv"})
      if (fs::exists(path / file) && !study.file.empty() &&
          read_text(path / file, ExitCode::io) !=
              (std::string(file) == "cells.csv" ? cells_csv(cells) : study.text))
        throw Error(ExitCode::usage, path.string() + " holds a " + file + " of another study", {},
                    "name another folder with --out");
    for (auto const* folder : {"configs", "launches"}) make_folder(path / folder);
    if (!study.file.empty()) replace_file(path / "study.yaml", study.text);
    replace_file(path / "cells.csv", cells_csv(cells));
    replace_file(path / "study.json", description(study).dump(2) + "\n");  // last: now it is one
  }
  return {std::move(path), std::move(cells), study.file};
}

StudyDirectory StudyDirectory::open(fs::path path) {
  auto const document = read_description(path);
  auto cells = read_cells(path / "cells.csv");
  auto file = document.value("file", std::string{});
  return {std::move(path), std::move(cells), file.empty() ? "STUDY" : std::move(file)};
}

bool StudyDirectory::is_one(fs::path const& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "study.json", ignored);
}

}  // namespace stratagem
