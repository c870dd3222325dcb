#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace stratagem {

/// A file of `torch.export.save`, read with LibTorch's own reader: a zip archive of a graph (JSON)
/// and of tensors (raw bytes). Never unpickles and never writes. Error(bad_data) names the file and
/// what is wrong; nothing larger than the file is allocated.
class ProgramArchive {
 public:
  explicit ProgramArchive(std::filesystem::path path);
  ~ProgramArchive();
  ProgramArchive(ProgramArchive const&) = delete;
  ProgramArchive& operator=(ProgramArchive const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  std::size_t bytes() const { return file_bytes_; }
  std::vector<std::string> const& records() const { return records_; }
  bool has(std::string const& record) const;
  std::string text(std::string const& record) const;
  std::size_t bytes_of(std::string const& record) const;
  /// The record must have exactly so many bytes.
  void read(std::string const& record, void* target, std::size_t bytes) const;

  [[noreturn]] void refuse(std::string const& why) const;
  [[noreturn]] void refuse(std::string const& why, std::string const& cure) const;

 private:
  class Reader;

  std::filesystem::path path_;
  std::size_t file_bytes_ = 0;
  std::unique_ptr<Reader> reader_;
  std::vector<std::string> records_;
};

}  // namespace stratagem
