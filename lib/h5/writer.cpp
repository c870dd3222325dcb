#include "h5/writer.hpp"

#include <algorithm>
#include <cstring>

#include <hdf5.h>
#include <unistd.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "h5/error.hpp"
#include "h5/types.hpp"

namespace stratagem::h5 {
namespace {

constexpr hsize_t streaming_chunk_rows = 256;  // small chunks: a kill loses nothing
constexpr hsize_t archive_chunk_rows = 16384;
/// Rows are only appended, so only a column's last chunk is used again. By default, HDF5 would keep
/// the last MiB of each of several hundred columns. This is set for the file, because settings of a
/// dataset are lost when streaming begins. The widest chunk is one of texts.
constexpr std::size_t kept_slots = 7, kept_bytes = 2 * streaming_chunk_rows * text_width;
/// Where the kernel may cut a write short if the process is killed.
constexpr hsize_t kernel_page_bytes = 4096;

std::size_t length(ColumnData const& data) {
  return std::visit([](auto const& values) { return values.size(); }, data);
}

void write_attribute(hid_t object, std::string const& name, AttributeValue const& value) {
  auto const action = "writing attribute " + name;
  auto const space = owned(H5Screate(H5S_SCALAR), action);
  if (auto const* text = std::get_if<std::string>(&value)) {
    // Texts of fixed length: texts of variable length would be stored in HDF5's global heap, which
    // has no checksum.
    auto const type = text_type(std::max<std::size_t>(text->size(), 1));
    auto const attribute =
        owned(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
              action);
    check(H5Awrite(attribute.get(), type.get(), text->c_str()), action);
    return;
  }
  bool const integer = std::holds_alternative<std::int64_t>(value);
  hid_t const type = integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE;
  auto const attribute =
      owned(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), action);
  void const* data =
      integer ? static_cast<void const*>(&std::get<std::int64_t>(value)) : &std::get<double>(value);
  check(H5Awrite(attribute.get(), type, data), action);
}

Handle create_column(hid_t group, ColumnSpec const& column, hsize_t chunk_rows, bool compressed) {
  auto const action = "creating column " + column.name;
  hsize_t const none = 0, unlimited = H5S_UNLIMITED;
  auto const space = owned(H5Screate_simple(1, &none, &unlimited), action);
  auto const properties = owned(H5Pcreate(H5P_DATASET_CREATE), action);
  check(H5Pset_chunk(properties.get(), 1, &chunk_rows), action);
  if (compressed) {
    check(H5Pset_shuffle(properties.get()), action);
    check(H5Pset_deflate(properties.get(), 4), action);
  }
  auto const type = column_type(column.type);
  auto dataset = owned(H5Dcreate2(group, column.name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                  properties.get(), H5P_DEFAULT),
                       action);
  write_attribute(dataset.get(), "unit", column.unit);
  write_attribute(dataset.get(), "long_name", column.long_name);
  return dataset;
}

/// Texts in consecutive cells of text_width bytes, padded with zeros.
std::vector<char> pack(Texts const& texts) {
  std::vector<char> cells(texts.size() * text_width);
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::memcpy(cells.data() + i * text_width, texts[i].data(),
                std::min(texts[i].size(), text_width));
  return cells;
}

}  // namespace

void TableWriter::append(std::vector<ColumnData> const& columns) {
  expects(columns.size() == datasets_.size(), "one entry per column");
  hsize_t const count = length(columns.front());
  if (count == 0) return;
  hsize_t const first = static_cast<hsize_t>(rows_), total = first + count;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    auto const action = str("appending to ", spec_.path, "/", spec_.columns[c].name, " of ", file_);
    expects(length(columns[c]) == count, "columns of equal length");
    expects(columns[c].index() == static_cast<std::size_t>(spec_.columns[c].type),
            "column of the declared type");
    hid_t const dataset = datasets_[c].get();
    check(H5Dset_extent(dataset, &total), action);
    auto const file_space = owned(H5Dget_space(dataset), action);
    check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr),
          action);
    auto const memory_space = owned(H5Screate_simple(1, &count, nullptr), action);
    auto const type = column_type(spec_.columns[c].type);
    std::vector<char> cells;
    void const* data = std::visit(
        [&](auto const& values) -> void const* {
          if constexpr (std::is_same_v<std::decay_t<decltype(values)>, Texts>) {
            cells = pack(values);
            return cells.data();
          } else {
            return values.data();
          }
        },
        columns[c]);
    check(H5Dwrite(dataset, type.get(), memory_space.get(), file_space.get(), H5P_DEFAULT, data),
          action);
  }
  rows_ += static_cast<std::int64_t>(count);
}

void TableWriter::flush() {
  for (auto const& dataset : datasets_)
    check(H5Dflush(dataset.get()), "flushing " + spec_.path + " of " + file_);
}

void TableWriter::close() {
  bool closed = true;
  for (auto& dataset : datasets_) closed = dataset.close() && closed;
  if (!closed) throw Hdf5Error("closing " + spec_.path + " of " + file_);
}

FileWriter::FileWriter(std::filesystem::path const& path, Mode mode) : path_(path), mode_(mode) {
  auto const action = "creating " + path.string();
  auto const access = owned(H5Pcreate(H5P_FILE_ACCESS), action);
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), action);
  auto const creation = owned(H5Pcreate(H5P_FILE_CREATE), action);
  if (mode == Mode::streaming) {
    check(H5Pset_cache(access.get(), 0, kept_slots, kept_bytes, 1), action);
    // None of HDF5's own blocks crosses a page, so each is written completely or not at all. This
    // holds up to two million rows; from then on, a table's index has blocks longer than a page.
    check(H5Pset_file_space_strategy(creation.get(), H5F_FSPACE_STRATEGY_PAGE, false, 1), action);
    check(H5Pset_file_space_page_size(creation.get(), kernel_page_bytes), action);
  }
  file_ = owned(H5Fcreate(path.c_str(), H5F_ACC_EXCL, creation.get(), access.get()), action);
}

void FileWriter::set_attribute(std::string const& group, std::string const& name,
                               AttributeValue const& value) {
  auto const object = owned(H5Oopen(file_.get(), group.c_str(), H5P_DEFAULT),
                            "opening " + group + " of " + path_.string());
  write_attribute(object.get(), name, value);
}

void FileWriter::create_group(std::string const& path) {
  auto const action = "creating " + path + " of " + path_.string();
  auto const links = owned(H5Pcreate(H5P_LINK_CREATE), action);
  check(H5Pset_create_intermediate_group(links.get(), 1), action);
  owned(H5Gcreate2(file_.get(), path.c_str(), links.get(), H5P_DEFAULT, H5P_DEFAULT), action);
}

TableWriter FileWriter::create_table(TableSpec const& spec) {
  create_group(spec.path);
  auto const group =
      owned(H5Gopen2(file_.get(), spec.path.c_str(), H5P_DEFAULT), "opening " + spec.path);
  TableWriter table(spec, path_.string());
  bool const archive = mode_ == Mode::archive;
  for (auto const& column : spec.columns)
    table.datasets_.push_back(create_column(
        group.get(), column, archive ? archive_chunk_rows : streaming_chunk_rows, archive));
  return table;
}

void FileWriter::start_streaming() {
  expects(mode_ == Mode::streaming, "only a streaming file streams");
  flush(false);
  check(H5Fstart_swmr_write(file_.get()), "starting to stream into " + path_.string());
}

void FileWriter::flush(bool to_disk) {
  auto const action = "flushing " + path_.string();
  check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), action);
  if (!to_disk) return;
  int* descriptor = nullptr;
  check(H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, reinterpret_cast<void**>(&descriptor)), action);
  if (::fdatasync(*descriptor) != 0)
    throw Error(ExitCode::io, action + " failed", std::strerror(errno));
}

void FileWriter::close() {
  // On a full disk, H5Fclose reports success; only the flush before it reports the error.
  flush(false);
  if (!file_.close()) throw Hdf5Error("closing " + path_.string());
}

}  // namespace stratagem::h5
