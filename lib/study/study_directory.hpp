#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/cell.hpp"
#include "study/matrix.hpp"

namespace stratagem {

/// The folder of a study. study.json, study.yaml and cells.csv define it. Each cell has a run
/// directory with its name, and files in configs/ and launches/ that show how it was started.
class StudyDirectory {
 public:
  /// Creates the folder for `study`, or reuses one that was made for it; several processes may do
  /// so at once. Error(usage) if it contains another study, Error(io) if it cannot be written.
  static StudyDirectory prepare(std::filesystem::path path, Study const& study);

  /// Opens an existing one. Error(usage) if it is not a study directory, or has another schema
  /// version.
  static StudyDirectory open(std::filesystem::path path);

  /// Whether `path` looks like one.
  static bool is_one(std::filesystem::path const& path);

  std::filesystem::path const& path() const { return path_; }
  std::vector<CellEntry> const& cells() const { return cells_; }

  std::filesystem::path run_directory(std::string const& cell) const { return path_ / cell; }
  std::filesystem::path config_file(std::string const& cell) const {
    return path_ / "configs" / (cell + ".yaml");
  }
  std::filesystem::path launch_file(std::string const& cell) const {
    return path_ / "launches" / (cell + ".json");
  }
  std::filesystem::path launch_log(std::string const& cell) const {
    return path_ / "launches" / (cell + ".log");
  }
  std::filesystem::path lock_file() const { return path_ / "sweep.lock"; }
  /// The lock of one cell, held while a sweep runs it.
  std::filesystem::path lock_file(std::string const& cell) const {
    return path_ / "launches" / (cell + ".lock");
  }
  std::filesystem::path summary_file() const { return path_ / "summary.csv"; }
  std::filesystem::path measures_file() const { return path_ / "measures.json"; }

  /// Path of the study's file as given; "STUDY" if there is none.
  std::string const& study_file() const { return study_file_; }

 private:
  StudyDirectory(std::filesystem::path path, std::vector<CellEntry> cells, std::string study_file)
      : path_(std::move(path)), cells_(std::move(cells)), study_file_(std::move(study_file)) {}

  std::filesystem::path path_;
  std::vector<CellEntry> cells_;
  std::string study_file_;
};

}  // namespace stratagem
