#include "model/exported/file/archive.hpp"

#include <algorithm>
#include <system_error>

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr char const* export_again = "export the model again with analysis/export_model.py";

/// Its first sentence: what follows guesses at causes, and then comes a stack.
std::string sentence_of(c10::Error const& error) {
  std::string const text = error.what_without_backtrace();
  return text.substr(0, std::min(text.find(". "), text.find('\n')));
}

bool leaves_the_archive(std::string const& record) {
  auto const parts = split(record, '/');
  return record.empty() || record.front() == '/' || std::ranges::find(parts, "..") != parts.end();
}

}  // namespace

/// The library's reader changes its state when it reads.
class ProgramArchive::Reader {
 public:
  explicit Reader(std::string const& path) : reader(path) {}

  caffe2::serialize::PyTorchStreamReader reader;
};

ProgramArchive::ProgramArchive(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path_, failed))
    throw Error(ExitCode::usage, str("cannot open model file ", path_.string()),
                failed ? failed.message() : "it is not a regular file", "check model.file");
  file_bytes_ = std::filesystem::file_size(path_, failed);
  try {
    reader_ = std::make_unique<Reader>(path_.string());
    records_ = reader_->reader.getAllRecords();
  } catch (c10::Error const& error) {
    refuse(sentence_of(error));
  }
  if (has("data.pkl") || has("constants.pkl"))
    refuse("it holds a pickle (torch.save, torch.jit.save), which is a program and is not opened");
  for (auto const& record : records_)
    if (leaves_the_archive(record)) refuse(str("its record \"", record, "\" leaves the archive"));
}

ProgramArchive::~ProgramArchive() = default;

bool ProgramArchive::has(std::string const& record) const {
  return std::ranges::find(records_, record) != records_.end();
}

std::size_t ProgramArchive::bytes_of(std::string const& record) const {
  if (!has(record)) refuse(str("it has no record ", record));
  std::size_t bytes = 0;
  try {
    bytes = reader_->reader.getRecordSize(record);
  } catch (c10::Error const& error) {
    refuse(str("record ", record, ": ", sentence_of(error)));
  }
  if (bytes > file_bytes_)
    refuse(str("its record ", record, " says that it has ", bytes, " bytes, the file has ",
               file_bytes_));
  return bytes;
}

std::string ProgramArchive::text(std::string const& record) const {
  std::string content(bytes_of(record), '\0');
  read(record, content.data(), content.size());
  return content;
}

void ProgramArchive::read(std::string const& record, void* target, std::size_t bytes) const {
  if (auto const held = bytes_of(record); held != bytes)
    refuse(str("its record ", record, " has ", held, " bytes, expected ", bytes));
  if (bytes == 0) return;
  try {
    reader_->reader.getRecord(record, target, bytes);
  } catch (c10::Error const& error) {
    refuse(str("record ", record, ": ", sentence_of(error)));
  }
}

void ProgramArchive::refuse(std::string const& why) const {
  refuse(why, export_again);
}

void ProgramArchive::refuse(std::string const& why, std::string const& cure) const {
  throw Error(ExitCode::bad_data, str("not a usable model file: ", path_.string()), why, cure);
}

}  // namespace stratagem
