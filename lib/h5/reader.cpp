#include "h5/reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <hdf5.h>

#include "base/contract.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "h5/error.hpp"
#include "h5/types.hpp"

namespace stratagem::h5 {
namespace {

template <class Values>
Values const& column(TableData const& table, std::string const& name) {
  auto const found = table.columns.find(name);
  expects(found != table.columns.end(), "a column of the table");
  return std::get<Values>(found->second);
}

/// Larger than any attribute that this program writes [bytes].
constexpr std::size_t longest_text = 16 << 20;

/// How often a block with a wrong checksum is read again, because its writer may be at work. HDF5
/// doubles its pause each time, starting at 1 ns: this number ends within 0.1 s, the default of 100
/// never does.
constexpr unsigned read_attempts = 25;

/// The writer was killed, or is still writing: the consistency flags in a superblock of version 2
/// or 3 (HDF5 File Format Specification, II.A).
bool has_writers_mark(std::filesystem::path const& path) {
  constexpr std::size_t version = 8, flags = 11;
  std::array<char, flags + 1> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return head[version] >= 2 && head[flags] != 0;
}

Handle open_while_written(std::filesystem::path const& path) {
  auto const action = "opening " + path.string();
  auto const access = owned(H5Pcreate(H5P_FILE_ACCESS), action);
  check(H5Pset_metadata_read_attempts(access.get(), read_attempts), action);
  return owned(H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()), action);
}

/// As in traces of earlier versions.
std::string text_of_any_length(hid_t attribute, hid_t type) {
  char* text = nullptr;
  check(H5Aread(attribute, type, &text), "reading a text");
  std::string const value = text != nullptr ? text : "";
  H5free_memory(text);
  return value;
}

std::string text_of_its_length(hid_t attribute, hid_t type) {
  auto const bytes = H5Tget_size(type);
  if (bytes > longest_text)
    throw Error(ExitCode::bad_data, str("an attribute claims ", bytes, " bytes of text"));
  std::string value(bytes, '\0');
  check(H5Aread(attribute, type, value.data()), "reading a text");
  value.resize(::strnlen(value.data(), bytes));
  return value;
}

AttributeValue read_attribute(hid_t object, std::string const& name) {
  auto const action = "reading attribute " + printable(name);
  auto const attribute = owned(H5Aopen(object, name.c_str(), H5P_DEFAULT), action);
  auto const type = owned(H5Aget_type(attribute.get()), action);
  switch (H5Tget_class(type.get())) {
    case H5T_INTEGER: {
      std::int64_t value = 0;
      check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), action);
      return value;
    }
    case H5T_FLOAT: {
      double value = 0;
      check(H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value), action);
      return value;
    }
    case H5T_STRING: {
      return H5Tis_variable_str(type.get()) > 0 ? text_of_any_length(attribute.get(), type.get())
                                                : text_of_its_length(attribute.get(), type.get());
    }
    default:
      break;
  }
  throw Error(ExitCode::bad_data, action + " failed",
              "it is of a type this program does not write");
}

ColumnData read_column(hid_t dataset, ColumnType type, hsize_t rows, std::string const& action) {
  hsize_t const first = 0;
  auto const file_space = owned(H5Dget_space(dataset), action);
  auto const memory_space = owned(H5Screate_simple(1, &rows, nullptr), action);
  if (rows > 0)
    check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &first, nullptr, &rows, nullptr),
          action);
  auto const memory_type = column_type(type);
  auto read = [&](void* into) {
    if (rows > 0)
      check(H5Dread(dataset, memory_type.get(), memory_space.get(), file_space.get(), H5P_DEFAULT,
                    into),
            action);
  };
  if (type == ColumnType::integer) {
    Integers values(rows);
    read(values.data());
    return values;
  }
  if (type == ColumnType::real) {
    Reals values(rows);
    read(values.data());
    return values;
  }
  std::vector<char> cells(rows * text_width);
  read(cells.data());
  Texts values;
  for (hsize_t i = 0; i < rows; ++i) {
    char const* cell = cells.data() + i * text_width;
    values.emplace_back(cell, ::strnlen(cell, text_width));
  }
  return values;
}

}  // namespace

Integers const& TableData::integers(std::string const& name) const {
  return column<Integers>(*this, name);
}
Reals const& TableData::reals(std::string const& name) const {
  return column<Reals>(*this, name);
}
Texts const& TableData::texts(std::string const& name) const {
  return column<Texts>(*this, name);
}

FileReader::FileReader(std::filesystem::path const& path) : path_(path) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown))
    throw Error(ExitCode::io, "cannot read " + path.string(), "it is not a regular file");
  file_bytes_ = std::filesystem::file_size(path, unknown);
  file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (file_.valid()) return;
  H5Eclear2(H5E_DEFAULT);
  closed_cleanly_ = !has_writers_mark(path);
  // HDF5 1.14 opens a truncated file as if it were still being written, and reads zeros.
  file_ = closed_cleanly_ ? owned(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                                  "opening " + path.string())
                          : open_while_written(path);
}

bool FileReader::has(std::string const& path) const {
  // H5Lexists requires that every group on the path exists.
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (H5Lexists(file_.get(), path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return path == "/";
    if (end == std::string::npos) return true;
  }
}

std::optional<AttributeValue> FileReader::attribute(std::string const& group,
                                                    std::string const& name) const {
  if (!has(group)) return std::nullopt;
  auto const object = owned(H5Oopen(file_.get(), group.c_str(), H5P_DEFAULT), "opening " + group);
  if (H5Aexists(object.get(), name.c_str()) <= 0) return std::nullopt;
  return read_attribute(object.get(), name);
}

std::map<std::string, AttributeValue> FileReader::attributes(std::string const& group) const {
  std::vector<std::string> names;
  auto const object = owned(H5Oopen(file_.get(), group.c_str(), H5P_DEFAULT), "opening " + group);
  check(H5Aiterate2(
            object.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
            [](hid_t, char const* name, H5A_info_t const*, void* out) -> herr_t {
              static_cast<std::vector<std::string>*>(out)->emplace_back(name);
              return 0;
            },
            &names),
        "listing attributes of " + group);
  std::map<std::string, AttributeValue> values;
  for (auto const& name : names) values[name] = read_attribute(object.get(), name);
  return values;
}

std::vector<std::string> FileReader::children(std::string const& group) const {
  std::vector<std::string> names;
  auto const object = owned(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT), "opening " + group);
  check(H5Literate(
            object.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
            [](hid_t, char const* name, H5L_info_t const*, void* out) -> herr_t {
              static_cast<std::vector<std::string>*>(out)->emplace_back(name);
              return 0;
            },
            &names),
        "listing " + group);
  return names;
}

/// Rows that were never written take no space in the file, but all of it in memory.
void FileReader::check_believable(TableSpec const& spec, std::int64_t rows) const {
  constexpr std::uintmax_t tightest = 1032;  // deflate cannot pack more tightly
  std::uintmax_t row_bytes = 0;
  for (auto const& column : spec.columns)
    row_bytes += column.type == ColumnType::text ? text_width : sizeof(std::int64_t);
  if (static_cast<std::uintmax_t>(rows) * row_bytes > tightest * file_bytes_)
    throw Error(ExitCode::bad_data,
                str(spec.path, " of ", path_.string(), " claims ", rows, " rows"),
                str("a file of ", file_bytes_, " bytes cannot hold them"));
}

TableData FileReader::read_table(TableSpec const& spec) const {
  std::vector<Handle> datasets;
  TableData table;
  table.rows = max_rows + 1;
  for (auto const& column : spec.columns) {
    auto const where = str(spec.path, "/", column.name, " of ", path_.string());
    if (!has(spec.path + "/" + column.name)) throw Error(ExitCode::bad_data, where + " is missing");
    auto dataset =
        owned(H5Dopen2(file_.get(), (spec.path + "/" + column.name).c_str(), H5P_DEFAULT),
              "opening " + where);
    auto const type = owned(H5Dget_type(dataset.get()), "inspecting " + where);
    if (H5Tequal(type.get(), column_type(column.type).get()) <= 0)
      throw Error(ExitCode::bad_data, where + " is not of the type that the schema says");
    auto const space = owned(H5Dget_space(dataset.get()), "inspecting " + where);
    hsize_t extent = 0;
    if (H5Sget_simple_extent_ndims(space.get()) != 1 ||
        H5Sget_simple_extent_dims(space.get(), &extent, nullptr) != 1)
      throw Error(ExitCode::bad_data, where + " is not one-dimensional");
    if (extent > static_cast<hsize_t>(max_rows))
      throw Error(ExitCode::bad_data, str(where, " claims ", extent, " rows"),
                  str("at most ", max_rows, " are read"));
    table.rows = std::min(table.rows, static_cast<std::int64_t>(extent));
    datasets.push_back(std::move(dataset));
  }
  check_believable(spec, table.rows);
  for (std::size_t c = 0; c < spec.columns.size(); ++c) {
    auto const& column = spec.columns[c];
    table.columns[column.name] =
        read_column(datasets[c].get(), column.type, static_cast<hsize_t>(table.rows),
                    str("reading ", spec.path, "/", column.name, " of ", path_.string()));
  }
  return table;
}

}  // namespace stratagem::h5
