#include "strategy/fsdp/unit_views.hpp"

#include <ATen/ATen.h>

#include "comm/communicator.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

at::ScalarType type_of(FsdpPlan const& plan, Chunk const& chunk, UnitViews::Kind kind) {
  return kind == UnitViews::Kind::parameters ? plan.types.parameters(chunk)
                                             : plan.types.gradients(chunk);
}

/// A storage of so many bytes that has no memory yet.
c10::Storage empty_storage(std::int64_t bytes, at::Device device) {
  return {c10::Storage::use_byte_size_t(), static_cast<std::size_t>(bytes),
          c10::DataPtr(nullptr, device), nullptr, false};
}

}  // namespace

UnitViews::UnitViews(FsdpPlan const& plan, int unit, Kind kind, ParameterLayout const& layout,
                     gpu::Device const& device)
    : first_block_(plan.unit(unit).first_block), device_(device.torch()) {
  auto const& cut = plan.unit(unit);
  auto const blocks = static_cast<std::size_t>(cut.last_block - first_block_ + 1);
  tensors_.resize(blocks);
  for (std::size_t i = 0; i < blocks; ++i)
    tensors_[i].resize(layout.entries(first_block_ + static_cast<int>(i)).size());
  for (auto const& chunk : cut.chunks) {
    auto const type = type_of(plan, chunk, kind);
    storages_.push_back(empty_storage(chunk.shard * plan.shards.ranks * size_of(type), device_));
    for (auto const& place : chunk.places) {
      auto const& entry = layout.entries()[place.entry];
      auto tensor = at::empty({0}, at::TensorOptions().dtype(type).device(device_));
      tensor.set_(storages_.back(), place.offset, entry.spec.shape, entry.strides);
      if (kind == Kind::parameters) tensor.requires_grad_();
      auto const position = &entry - layout.entries(entry.block).data();
      tensors_[static_cast<std::size_t>(entry.block - first_block_)]
              [static_cast<std::size_t>(position)] = tensor;
    }
  }
}

void UnitViews::point_to(at::Tensor const& memory) {
  auto* address = static_cast<std::byte*>(memory.data_ptr());
  for (auto& storage : storages_) {
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(address, device_));
    address += storage.nbytes();
  }
}

void UnitViews::point_nowhere() {
  for (auto& storage : storages_)
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(nullptr, device_));
}

std::vector<std::vector<at::Tensor>> tensors_by_block(std::vector<UnitViews const*> const& units,
                                                      FsdpPlan const& plan,
                                                      ParameterLayout const& layout) {
  std::vector<std::vector<at::Tensor>> all;
  for (int block = 0; block < layout.blocks(); ++block) {
    auto const own = units[static_cast<std::size_t>(plan.shards.unit_of(block))]->block(block);
    auto& tensors = all.emplace_back(own.begin(), own.end());
    for (auto const index : layout.borrowed(block)) {
      auto const& entry = layout.entries()[index];
      auto const position = &entry - layout.entries(entry.block).data();
      tensors.push_back(
          all[static_cast<std::size_t>(entry.block)][static_cast<std::size_t>(position)]);
    }
  }
  return all;
}

at::Tensor shards_of(at::Tensor const& memory, FsdpPlan const& plan, int unit, std::size_t chunk,
                     UnitViews::Kind kind, int shards) {
  std::int64_t offset = 0, bytes = 0;
  for (std::size_t i = 0; i <= chunk; ++i) {
    auto const& each = plan.unit(unit).chunks[i];
    offset += bytes;
    bytes = each.shard * shards * size_of(type_of(plan, each, kind));
  }
  return memory.narrow(0, offset, bytes).view(type_of(plan, plan.unit(unit).chunks[chunk], kind));
}

at::Tensor chunk_of(at::Tensor const& memory, FsdpPlan const& plan, int unit, std::size_t chunk,
                    UnitViews::Kind kind) {
  return shards_of(memory, plan, unit, chunk, kind, plan.shards.ranks);
}

at::Tensor own_part(at::Tensor const& whole, Chunk const& chunk, int rank) {
  return whole.narrow(0, rank * chunk.shard, chunk.shard);
}

}  // namespace stratagem
