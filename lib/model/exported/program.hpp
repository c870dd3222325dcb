#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include "model/exported/file/archive.hpp"
#include "model/exported/file/extent.hpp"

namespace stratagem {

/// The exported graph of a model, as its file tells it: values, the operators that make them, and
/// which values are the model's state. Nothing of it has been run.

/// Index into ExportedProgram::values.
using ValueId = int;

struct ExportedValue {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<Extent> shape;
  bool contiguous = true;  ///< in Python

  /// Of state, which does not depend on the number of samples.
  std::vector<std::int64_t> fixed_shape() const;
};

/// An argument of a node. Devices, and the floating type of the model, are those of the pass, not
/// of the file.
struct ExportedArgument {
  struct Tensor {
    ValueId value;
  };
  struct Tensors {
    std::vector<ValueId> values;  ///< -1: none
  };
  struct Integers {
    std::vector<Extent> extents;
    bool is_list;

    c10::IValue value(std::int64_t samples) const;
  };
  struct Device {};
  struct FloatingType {};

  std::string name;  ///< in the operator's schema
  std::variant<c10::IValue, Tensor, Tensors, Integers, Device, FloatingType> value;
};

struct ExportedNode {
  std::string target;    ///< operator and overload: `aten::conv2d`, `aten::add_.Tensor`
  std::string name;      ///< unique in the graph; names random masks
  std::string module;    ///< path in the user's model; empty: the model itself
  std::string location;  ///< file and line of the user's source; may be empty
  std::vector<ExportedArgument> arguments;
  std::vector<ValueId> outputs;
  bool returns_list = false;
  bool without_gradient = false;  ///< under torch.no_grad()

  /// `aten::div_.Tensor_mode` -> `div`.
  std::string_view base_name() const;
};

/// A value that the graph starts from.
struct ExportedState {
  enum class Kind { parameter, buffer, constant };

  Kind kind;
  std::string name;  ///< in the state_dict; of constants, in the file
  ValueId value;
  bool frozen = false;      ///< a parameter whose requires_grad is false
  bool literal = false;     ///< a constant that forward() makes, so no buffer
  std::string record = {};  ///< of its bytes in the archive
  /// Where its elements are among these.
  std::vector<std::int64_t> strides = {};
  std::int64_t offset = 0;

  bool same_bytes(ExportedState const& other) const {
    return record == other.record && strides == other.strides && offset == other.offset;
  }
};

struct ExportedProgram {
  std::string path;
  at::ScalarType type = at::kFloat;  ///< floating type of its parameters
  std::vector<ExportedValue> values;
  std::vector<ExportedNode> nodes;   ///< in the order of execution; all contribute to the output
  std::vector<ExportedState> state;  ///< in the order of the state_dict, then constants
  std::map<std::string, std::string> tied;  ///< further names of parameters, to those in `state`
  ValueId input = -1;                       ///< [n, ...]
  std::int64_t most_samples = 0;            ///< of a pass; 0: any number
  ValueId output = -1;                      ///< logits [n, classes]

  ExportedValue const& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  /// Where nodes read a value, lets them read another.
  void replace(std::map<ValueId, ValueId> const& by);
};

/// The operator, its module, and the line of the user's source.
std::string describe(ExportedNode const& node);

/// Error(bad_data) that names the file, the operator, its module, and the line of the user's
/// source.
[[noreturn]] void refuse(ExportedProgram const& program, ExportedNode const& node,
                         std::string const& why, std::string const& cure = {});

/// Reads the graph; regions under torch.no_grad() become part of it. Error(bad_data) names the
/// file, the node and the line of the user's source, for whatever a training here cannot do:
/// operators outside of aten, random numbers other than dropout and Bernoulli masks, control flow,
/// shapes that depend on data, several inputs.
ExportedProgram read_program(ProgramArchive const& archive);

/// `[samples, 8, 4]`.
std::string shape_text(ExportedValue const& value);

/// 16 hex digits over operators, arguments and shapes; not over paths, or names of values.
std::string digest_of(ExportedProgram const& program);

}  // namespace stratagem
