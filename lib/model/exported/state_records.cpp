#include "model/exported/state_records.hpp"

#include "base/text.hpp"
#include "model/exported/export_types.hpp"

namespace stratagem {
namespace {

using Json = Fields::Json;
using Kind = ExportedState::Kind;

/// The bytes must be those of a contiguous tensor.
void check_meta(Fields const& fields, GraphValues const& values, ExportedState const& state,
                Json const& meta) {
  auto const& value = values.value(state.value);
  auto const &sizes = fields.array(meta, "sizes"), &strides = fields.array(meta, "strides");
  bool alike = exported_type(fields.integer(meta, "dtype")) == value.type &&
               sizes.size() == value.shape.size() && strides.size() == sizes.size();
  bool contiguous = values.extent(fields.member(meta, "storage_offset")) == Extent{};
  std::int64_t step = 1;
  for (auto i = sizes.size(); alike && i-- > 0;) {
    alike = values.extent(sizes[i]) == value.shape[i];
    auto const extent = value.shape[i].fixed;
    if (extent > 1) contiguous = contiguous && values.extent(strides[i]) == Extent{.fixed = step};
    step *= extent;
  }
  if (!alike)
    fields.refuse(
        str("the values of ", state.name, " have another shape or type than in the graph"));
  if (!contiguous) fields.refuse(str("the values of ", state.name, " are not contiguous"));
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
    check_meta(fields, values, each, fields.object(entry, "tensor_meta"));
    each.record = folder + fields.text(entry, "path_name");
  }
}

}  // namespace

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
