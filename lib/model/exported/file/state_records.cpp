#include "model/exported/file/state_records.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "model/exported/file/export_types.hpp"

namespace stratagem {
namespace {

using Json = Fields::Json;
using Kind = ExportedState::Kind;

constexpr std::int64_t most = std::int64_t{1} << 48;  ///< elements: products do not overflow

std::int64_t elements_of(ExportedValue const& value) {
  std::int64_t product = 1;
  for (auto const& extent : value.shape) {
    if (extent.fixed > 0 && product > most / extent.fixed) return most;
    product *= extent.fixed;
  }
  return product;
}

/// The only type and shape are the graph's; strides and offset are whatever the tensor had.
void read_meta(Fields const& fields, GraphValues const& values, ExportedState& state,
               Json const& meta) {
  auto const& value = values.value(state.value);
  auto const &sizes = fields.array(meta, "sizes"), &strides = fields.array(meta, "strides");
  bool alike = exported_type(fields.integer(meta, "dtype")) == value.type &&
               sizes.size() == value.shape.size() && strides.size() == sizes.size();
  for (std::size_t i = 0; alike && i < sizes.size(); ++i)
    alike = values.extent(sizes[i]) == value.shape[i];
  if (!alike)
    fields.refuse(
        str("the values of ", state.name, " have another shape or type than in the graph"));
  auto const number = [&](Json const& size) {
    auto const extent = values.extent(size);
    if (!extent || extent->per_sample != 0 || extent->fixed < 0)
      fields.refuse(str("the values of ", state.name, " lie at no fixed place"));
    return extent->fixed;
  };
  state.offset = number(fields.member(meta, "storage_offset"));
  for (auto const& stride : strides) state.strides.push_back(number(stride));
}

void read_table(Fields const& fields, GraphValues const& values, std::string const& folder,
                std::string const& table, std::vector<ExportedState>& state) {
  auto const config = fields.parse(folder + table);
  auto const& entries = fields.object(config, "config");
  for (auto& each : state) {
    if (!each.record.empty() || !entries.contains(each.name)) continue;
    auto const& entry = entries.at(each.name);
    if (fields.member(entry, "use_pickle") != false)
      fields.refuse(str("the values of ", each.name, " are a pickle, which is not opened"));
    read_meta(fields, values, each, fields.object(entry, "tensor_meta"));
    each.record = folder + fields.text(entry, "path_name");
  }
}

}  // namespace

std::int64_t elements_until(ExportedProgram const& program, ExportedState const& state) {
  auto const& shape = program.value(state.value).shape;
  auto last = std::min(state.offset, most);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    auto const steps = shape[i].fixed - 1;
    if (steps < 0) return 0;
    if (steps > 0 && state.strides[i] > (most - last) / steps) return most;
    last += steps * state.strides[i];
  }
  return last + 1;
}

at::Tensor read_state(ProgramArchive const& archive, ExportedProgram const& program,
                      ExportedState const& state) {
  auto const& value = program.value(state.value);
  auto const bytes = archive.bytes_of(state.record);
  auto const size = static_cast<std::int64_t>(c10::elementSize(value.type));
  auto const wanted = std::max(elements_until(program, state), elements_of(value)) * size;
  if (std::cmp_less(bytes, wanted))
    archive.refuse(
        str("its values of ", state.name, " have ", bytes, " bytes, its shape needs ", wanted));
  auto const memory = at::empty({static_cast<std::int64_t>(bytes) / size}, value.type);
  if (std::cmp_not_equal(bytes, memory.nbytes()))
    archive.refuse(str("its values of ", state.name, " end within a number"));
  archive.read(state.record, memory.data_ptr(), bytes);
  if (wanted == 0) return at::empty(value.fixed_shape(), value.type);
  return memory.as_strided(value.fixed_shape(), state.strides, state.offset).contiguous();
}

void find_state_records(Fields const& fields, GraphValues const& values, std::string const& graph,
                        std::vector<ExportedState>& state) {
  if (fields.archive().has("data/weights/" + graph + ".pt"))
    fields.archive().refuse("its weights are a pickle, as torch 2.8 writes them",
                            "export it with analysis/export_model.py, which writes them plainly");
  read_table(fields, values, "data/weights/", graph + "_weights_config.json", state);
  read_table(fields, values, "data/constants/", graph + "_constants_config.json", state);
  for (auto const& each : state)
    if (each.record.empty()) fields.refuse(str("it has no values for ", each.name));
}

}  // namespace stratagem
