#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/exported/file/fields.hpp"
#include "model/exported/program.hpp"

namespace stratagem {

/// The values of a graph that is being read: which there are, and which have been made so far.
class GraphValues {
 public:
  using Json = Fields::Json;

  /// Reads the tensors and integers that the graph describes.
  GraphValues(Fields const& fields, Json const& graph, Json const& signature);

  std::string const& input() const { return input_; }      ///< name of the model's
  std::string const& samples() const { return samples_; }  ///< expression of their number
  /// Of the parameters; of the input where there are none.
  at::ScalarType floating_type() const { return floating_type_; }
  ExportedValue const& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  std::vector<ExportedValue> take() { return std::move(values_); }

  /// `user` names who asks, for the message.
  ValueId find(std::string const& name, std::string const& user) const;
  /// One that was made before.
  ValueId use(std::string const& name, std::string const& user) const;
  /// Each is made once.
  void make(ValueId value);

  /// Names in a graph within the graph hide those around it.
  using Names = std::map<std::string, ValueId>;
  /// Reads what `graph` describes; its inputs are `values` under other names. Returns the names
  /// around it, for leave().
  Names enter(Json const& graph, std::vector<ValueId> const& values);
  void leave(Names names) { ids_ = std::move(names); }
  /// Another name of a value.
  void rename(std::string const& name, ValueId value) { ids_[name] = value; }

  /// An integer that is given, or computed from the number of samples.
  Extent integer(Json const& tagged, std::string const& what) const;
  /// Empty if it depends on data, or otherwise than linearly on the number of samples.
  std::optional<Extent> extent(Json const& size) const;

 private:
  void find_samples(Json const& graph, Json const& signature);
  void find_floating_type(Json const& signature);
  void read_tensor(std::string const& name, Json const& meta);
  bool is_contiguous(ExportedValue const& value, Json const& meta) const;
  void read_integers(Json const& integers);

  Fields fields_;
  std::string input_, samples_;
  at::ScalarType floating_type_ = at::kFloat;
  std::vector<ExportedValue> values_;
  std::vector<bool> made_;
  Names ids_;
  std::map<std::string, Extent> integers_;
};

}  // namespace stratagem
