#pragma once

#include <string>

#include "model/exported/file/fields.hpp"
#include "model/exported/file/graph_values.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// Reads the arguments of nodes.
class ArgumentReader {
 public:
  using Json = Fields::Json;

  ArgumentReader(Fields const& fields, GraphValues const& values)
      : fields_(fields), values_(values) {}

  /// `node` names it in messages.
  ExportedArgument read(Json const& argument, std::string const& node) const;

 private:
  using Value = decltype(ExportedArgument::value);

  Value value_of(std::string const& kind, Json const& value, std::string const& what) const;
  Value list_of(std::string const& kind, Json const& list, std::string const& what) const;
  Value tensors_of(std::string const& kind, Json const& list, std::string const& what) const;
  Value optional_tensor(Json const& value, std::string const& what) const;
  Value type_of(Json const& value, std::string const& what) const;

  Fields fields_;
  GraphValues const& values_;
};

}  // namespace stratagem
