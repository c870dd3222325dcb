#include "strategy/pass/replica.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "gpu/memory.hpp"
#include "params/initialise.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {

Replica::Replica(Model const& model, Precision precision, gpu::Device const& device,
                 std::uint64_t seed, Code code)
    : model_(model), layout_(make_layout(model)) {
  if (code != Code::none) {
    refuse_codes_on_gpu(device);
    codec_.emplace(code, Rounding::nearest, 0);
  }
  gpu::MemoryScope const scope(gpu::MemoryCategory::parameters, device);
  auto const options = at::TensorOptions().device(device.torch());
  flat_ = at::empty({layout_.size()}, options.dtype(master_type(precision)));
  initialise(flat_, layout_, seed);
  if (codec_ || compute_type(precision) != master_type(precision)) {
    rounded_ = at::empty({layout_.size()}, options.dtype(compute_type(precision)));
    refresh({0, layout_.size()});
  }
  for (int block = 0; block < layout_.blocks(); ++block) {
    auto& of_block = parameters_.emplace_back();
    for (auto const* entry : layout_.used_by(block)) {
      auto const& home = rounded_.defined() && !entry->spec.keep_fp32 ? rounded_ : flat_;
      of_block.push_back(view_of(home, *entry).detach().requires_grad_());
    }
  }
}

void Replica::refresh(FlatRange range) {
  if (!rounded_.defined() || range.size() == 0) return;
  at::NoGradGuard const no_grad;
  if (codec_) return refresh_in_code({range.begin, ParameterLayout::aligned(range.end)});
  rounded_.narrow(0, range.begin, range.size()).copy_(flat_.narrow(0, range.begin, range.size()));
}

at::Tensor Replica::rounded(FlatRange range) const {
  if (!rounded_.defined() || codec_) return {};
  return rounded_.narrow(0, range.begin, range.size());
}

void Replica::refresh_in_code(FlatRange range) {
  constexpr std::int64_t piece = 1 << 16;  // elements
  for (auto begin = range.begin; begin < range.end; begin += piece) {
    auto const count = std::min(piece, range.end - begin);
    auto const values = flat_.narrow(0, begin, count).clone();
    codec_->pass_through(numbers_of(values), {}, {});
    rounded_.narrow(0, begin, count).copy_(values);
  }
}

NamedTensors Replica::named(at::Tensor const& flat, Wanted const& wanted) const {
  NamedTensors tensors;
  for (auto const& entry : layout_.entries())
    if (wanted(entry.spec.name)) append(tensors, entry.spec, view_of(flat, entry));
  return tensors;
}

NamedTensors Replica::views(at::Tensor const& flat, std::string const& prefix) const {
  NamedTensors tensors;
  for (auto const& entry : layout_.entries())
    tensors.emplace_back(prefix + label_of(entry.spec), view_of(flat, entry));
  return tensors;
}

void Replica::load(std::map<std::string, at::Tensor> const& tensors) {
  at::NoGradGuard const no_grad;
  for (auto const& entry : layout_.entries()) {
    auto const given = find(tensors, entry.spec);
    if (!given.defined()) continue;
    view_of(flat_, entry).copy_(given);
    refresh({entry.offset, entry.offset + entry.spec.numel()});
  }
}

std::vector<ParameterState> Replica::state(OptimizerState const& kept) const {
  FlatRange const all{0, layout_.size()};
  std::vector<ParameterState> state{
      {State::parameters, flat_.scalar_type(), pieces_of(layout_, all, flat_)}};
  for (auto const& [kind, flat] : kept)
    state.push_back({kind, flat.scalar_type(), pieces_of(layout_, all, flat)});
  return state;
}

}  // namespace stratagem
