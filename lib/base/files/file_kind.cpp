#include "base/files/file_kind.hpp"

#include <algorithm>

namespace stratagem {
namespace {

using namespace std::string_view_literals;
using Content = FileKind::Content;

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  FileKind kind;
};

constexpr Signature signatures[]{
    {0, "PK\3\4"sv, {"a zip archive", Content::archive}},
    {0, "PK\5\6"sv, {"an empty zip archive", Content::archive}},
    {257, "ustar"sv, {"a tar archive", Content::tar}},
    {0, "7z\xBC\xAF\x27\x1C"sv, {"a 7z archive", Content::archive}},
    {0, "Rar!\x1A\x07"sv, {"a rar archive", Content::archive}},
    {0, "!<arch>\n"sv, {"an ar archive", Content::archive}},
    {0, "\x1F\x8B"sv, {"packed by gzip", Content::packed}},
    {0, "\x28\xB5\x2F\xFD"sv, {"packed by zstd", Content::packed}},
    {0,
     "\xFD"
     "7zXZ\0"sv,
     {"packed by xz", Content::packed}},
    {0, "BZh"sv, {"packed by bzip2", Content::packed}},
    {0, "\x04\x22\x4D\x18"sv, {"packed by lz4", Content::packed}},
    {0, "\xFF\xD8\xFF"sv, {"a JPEG image", Content::image}},
    {0, "\x89PNG\r\n\x1A\n"sv, {"a PNG image", Content::image}},
    {0, "GIF8"sv, {"a GIF image", Content::image}},
    {8, "WEBP"sv, {"a WebP image", Content::image}},
    {0, "II*\0"sv, {"a TIFF image", Content::image}},
    {0, "MM\0*"sv, {"a TIFF image", Content::image}},
    {4, "ftyp"sv, {"a HEIC, AVIF or MP4 file", Content::image}},
    {0, "\x89HDF\r\n\x1A\n"sv, {"an HDF5 file", Content::hdf5}},
    {512, "\x89HDF\r\n\x1A\n"sv, {"an HDF5 file", Content::hdf5}},
    {0, "MATLAB 7.3 MAT-file"sv, {"a MATLAB file, which is HDF5", Content::hdf5}},
    {0, "MATLAB 5.0 MAT-file"sv, {"a MATLAB file of version 5", Content::array}},
    {0, "\x93NUMPY"sv, {"a numpy array", Content::array}},
    {0, "CDF\1"sv, {"a netCDF file", Content::array}},
    {0, "CDF\2"sv, {"a netCDF file", Content::array}},
    {0, "\0\0\x08\x01"sv, {"an IDX file of labels", Content::array}},
    {0, "\0\0\x08\x03"sv, {"an IDX file of images", Content::array}},
    {0, "PAR1"sv, {"a Parquet table", Content::table}},
    {0, "ARROW1"sv, {"an Arrow table", Content::table}},
    {0, "ORC"sv, {"an ORC table", Content::table}},
    {0, "Obj\1"sv, {"an Avro table", Content::table}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", Content::table}},
    {0, "\x80\2"sv, {"a Python pickle", Content::pickle}},
    {0, "\x80\3"sv, {"a Python pickle", Content::pickle}},
    {0, "\x80\4\x95"sv, {"a Python pickle", Content::pickle}},
    {0, "\x80\5\x95"sv, {"a Python pickle", Content::pickle}},
    {0, "GGUF"sv, {"a GGUF model", Content::model}},
    {0, "%PDF-"sv, {"a PDF document", Content::document}},
    {0, "{\\rtf"sv, {"an RTF document", Content::document}},
    {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, {"an Office document", Content::document}},
    {0, "\xFF\xFE"sv, {"text in UTF-16 or UTF-32", Content::document}},
    {0, "\xFE\xFF"sv, {"text in UTF-16", Content::document}},
    {0, "\0\0\xFE\xFF"sv, {"text in UTF-32", Content::document}},
    {0,
     "\x7F"
     "ELF"sv,
     {"a program", Content::other}},
    {0, "MZ\x90\0"sv, {"a program", Content::other}},
    {8, "WAVE"sv, {"a WAV sound", Content::other}},
    {0, "fLaC"sv, {"a FLAC sound", Content::other}},
    {0, "OggS"sv, {"an Ogg sound", Content::other}},
    {0, "ID3"sv, {"an MP3 sound", Content::other}},
};

/// A protocol buffer whose first field is a small version, and the second a text.
bool is_onnx(std::string_view text) {
  return text.size() > 3 && text[0] == '\x08' && text[1] > 0 && text[1] < 32 && text[2] == '\x12';
}
constexpr FileKind onnx{"an ONNX model", Content::model};

bool is_unlike_text(std::byte byte) {
  auto const value = std::to_integer<unsigned char>(byte);
  constexpr std::string_view of_text = "\b\t\n\v\f\r\x1A\x1B";
  return value == 0x7F || (value < 0x20 && of_text.find(static_cast<char>(value)) == of_text.npos);
}

}  // namespace

FileKind const* kind_of(std::span<std::byte const> start) {
  std::string_view const text(reinterpret_cast<char const*>(start.data()), start.size());
  auto const found = std::ranges::find_if(signatures, [text](Signature const& signature) {
    return text.size() > signature.offset &&
           text.substr(signature.offset).starts_with(signature.bytes);
  });
  if (found != std::end(signatures)) return &found->kind;
  return is_onnx(text) ? &onnx : nullptr;
}

bool may_be_text(std::span<std::byte const> bytes) {
  constexpr std::ptrdiff_t one_of = 100;
  return std::ranges::count_if(bytes, is_unlike_text) * one_of <= std::ssize(bytes);
}

}  // namespace stratagem
