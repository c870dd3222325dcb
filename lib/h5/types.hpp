#pragma once

#include <hdf5.h>

#include "h5/column.hpp"
#include "h5/error.hpp"

namespace stratagem::h5 {

/// UTF-8 in a fixed number of bytes, padded with zeros.
inline Handle text_type(std::size_t bytes) {
  auto text = owned(H5Tcopy(H5T_C_S1), "copying a type");
  check(H5Tset_size(text.get(), bytes), "sizing a type");
  check(H5Tset_strpad(text.get(), H5T_STR_NULLPAD), "padding a type");
  check(H5Tset_cset(text.get(), H5T_CSET_UTF8), "setting a character set");
  return text;
}

/// The HDF5 type of a column's elements, the same in memory and in the file.
inline Handle column_type(ColumnType type) {
  if (type == ColumnType::integer) return owned(H5Tcopy(H5T_NATIVE_INT64), "copying a type");
  if (type == ColumnType::real) return owned(H5Tcopy(H5T_NATIVE_DOUBLE), "copying a type");
  return text_type(text_width);
}

}  // namespace stratagem::h5
