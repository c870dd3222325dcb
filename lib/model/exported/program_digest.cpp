#include <map>
#include <sstream>

#include "base/hash/hash.hpp"
#include "model/exported/program.hpp"

namespace stratagem {
namespace {

/// Values by the order in which they are made, so that names do not count.
class Digest {
 public:
  explicit Digest(ExportedProgram const& program) : program_(program) {
    number(program.input);
    for (auto const& state : program.state) {
      number(state.value);
      hash_.add(state.name).add(static_cast<std::uint64_t>(state.kind));
      add_shape(state.value);
      if (state.frozen) hash_.add(std::string("frozen"));
    }
    for (auto const& node : program.nodes) add(node);
    hash_.add(numbers_.at(program.output));
  }

  std::string hex() const { return hash_.hex(); }

 private:
  void number(ValueId value) { numbers_.emplace(value, numbers_.size()); }
  void use(ValueId value) { hash_.add(value < 0 ? ~std::uint64_t{0} : numbers_.at(value)); }

  void add(Extent const& extent) {
    hash_.add(static_cast<std::uint64_t>(extent.fixed))
        .add(static_cast<std::uint64_t>(extent.per_sample));
  }
  void add_shape(ValueId value) {
    auto const& of = program_.value(value);
    hash_.add(static_cast<std::uint64_t>(of.type)).add(std::uint64_t{of.shape.size()});
    for (auto const& extent : of.shape) add(extent);
  }

  void add(ExportedArgument const& argument) {
    auto const& [name, value] = argument;
    hash_.add(name).add(std::uint64_t{value.index()});
    if (auto const* constant = std::get_if<c10::IValue>(&value)) {
      std::ostringstream text;
      text << *constant;
      hash_.add(text.str());
    } else if (auto const* tensor = std::get_if<ExportedArgument::Tensor>(&value)) {
      use(tensor->value);
    } else if (auto const* tensors = std::get_if<ExportedArgument::Tensors>(&value)) {
      for (auto id : tensors->values) use(id);
    } else if (auto const* integers = std::get_if<ExportedArgument::Integers>(&value)) {
      for (auto const& extent : integers->extents) add(extent);
    }
  }

  void add(ExportedNode const& node) {
    hash_.add(node.target).add(std::uint64_t{node.arguments.size()});
    if (node.without_gradient) hash_.add(std::string("no_grad"));
    for (auto const& argument : node.arguments) add(argument);
    for (auto output : node.outputs) {
      number(output);
      add_shape(output);
    }
  }

  ExportedProgram const& program_;
  Hash hash_;
  std::map<ValueId, std::uint64_t> numbers_;
};

}  // namespace

std::string digest_of(ExportedProgram const& program) {
  return Digest(program).hex();
}

}  // namespace stratagem
