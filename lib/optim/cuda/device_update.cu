#include <array>
#include <utility>

#include "gpu/cuda/floats.cuh"
#include "optim/cuda/device_update_kernel.hpp"

namespace stratagem {
namespace {

constexpr int threads = 256;

/// Elements that are read and written at once.
template <class T, int width>
struct alignas(width * sizeof(T)) Pack {
  T at[width];
};

template <class T, int width>
__device__ Pack<T, width>& pack_at(void* memory, std::int64_t first) {
  return *reinterpret_cast<Pack<T, width>*>(static_cast<T*>(memory) + first);
}
template <class T, int width>
__device__ Pack<T, width> const& pack_at(void const* memory, std::int64_t first) {
  return *reinterpret_cast<Pack<T, width> const*>(static_cast<T const*>(memory) + first);
}

template <class To, class T, int width>
__device__ void write_rounded(void* memory, std::int64_t first, Pack<T, width> const& values) {
  Pack<To, width> rounded;
  for (int i = 0; i < width; ++i) gpu::round_to(rounded.at[i], static_cast<float>(values.at[i]));
  pack_at<To, width>(memory, first) = rounded;
}

template <class T, int width>
__device__ void write_rounded(RoundedCopy const& copy, std::int64_t first,
                              Pack<T, width> const& values) {
  if (copy.memory == nullptr) return;
  if (copy.type == RoundedCopy::Type::bf16)
    write_rounded<__nv_bfloat16>(copy.memory, first, values);
  else
    write_rounded<__half>(copy.memory, first, values);
}

template <int width, class Rule, std::size_t... kind>
__device__ void update_pack(Rule const& rule, UpdateLaunch const& launch, std::int64_t first,
                            std::index_sequence<kind...>) {
  using T = typename Rule::Element;
  auto const& memory = launch.memory;
  auto const g = pack_at<T, width>(memory.gradients, first);
  auto p = pack_at<T, width>(memory.parameters, first);
  std::array<Pack<T, width>, Rule::kinds> state{pack_at<T, width>(memory.state[kind], first)...};
  for (int i = 0; i < width; ++i) rule(p.at[i], g.at[i], state[kind].at[i]...);
  pack_at<T, width>(memory.parameters, first) = p;
  ((pack_at<T, width>(memory.state[kind], first) = state[kind]), ...);
  write_rounded(launch.rounded, first, p);
}

/// The piece of which a block has a tile.
__device__ UpdateLaunch::Piece const& piece_of(UpdateLaunch const& launch, std::int32_t block) {
  int low = 0, high = launch.count;  // it is in [low, high)
  while (high - low > 1) {
    int const middle = (low + high) / 2;
    (launch.pieces[middle].first_block <= block ? low : high) = middle;
  }
  return launch.pieces[low];
}

/// How many elements behind a place where packs may begin.
template <class T, int width>
__host__ __device__ int offset_in_pack(void const* memory) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(memory) / sizeof(T) % width);
}

template <class Rule, int width>
__global__ void __launch_bounds__(threads)
    update(const __grid_constant__ UpdateLaunch launch, Rule const decaying, Rule const other) {
  if (launch.refusal != nullptr && *launch.refusal == 1) return;
  auto const block = static_cast<std::int32_t>(blockIdx.x);
  auto const& piece = piece_of(launch, block);
  Rule const rule = piece.decays ? decaying : other;
  constexpr auto kinds = std::make_index_sequence<Rule::kinds>();

  auto const begin = piece.begin + std::int64_t{block - piece.first_block} * UpdateLaunch::tile;
  auto const end = min(begin + UpdateLaunch::tile, piece.end);
  auto const offset = offset_in_pack<typename Rule::Element, width>(launch.memory.parameters);
  auto const first = min(begin + (width - (offset + begin) % width) % width, end);
  auto const last = end - (end - first) % width;
  auto const thread = std::int64_t{threadIdx.x};
  if (begin + thread < first) update_pack<1>(rule, launch, begin + thread, kinds);
  for (auto i = first + width * thread; i < last; i += width * threads)
    update_pack<width>(rule, launch, i, kinds);
  if (last + thread < end) update_pack<1>(rule, launch, last + thread, kinds);
}

/// Packs begin at the same elements wherever these are.
template <class Rule, int width>
bool aligned_alike(UpdateLaunch const& launch) {
  using T = typename Rule::Element;
  auto const offset = offset_in_pack<T, width>(launch.memory.parameters);
  bool alike = offset_in_pack<T, width>(launch.memory.gradients) == offset;
  for (int kind = 0; kind < Rule::kinds; ++kind)
    alike = alike && offset_in_pack<T, width>(launch.memory.state[kind]) == offset;
  auto const* const rounded = launch.rounded.memory;
  return alike && (rounded == nullptr || offset_in_pack<__half, width>(rounded) == offset);
}

}  // namespace

cudaError_t launch(UpdateLaunch const& launch, ElementRule const& decaying,
                   ElementRule const& other, cudaStream_t stream) {
  std::visit(
      [&](auto const& rule) {
        using Rule = std::decay_t<decltype(rule)>;
        static_assert(sizeof(UpdateLaunch) + 2 * sizeof(Rule) <= 4096);
        constexpr int width = 16 / sizeof(typename Rule::Element);
        auto const& kernel =
            aligned_alike<Rule, width>(launch) ? update<Rule, width> : update<Rule, 1>;
        kernel<<<static_cast<unsigned>(launch.blocks), threads, 0, stream>>>(launch, rule,
                                                                             std::get<Rule>(other));
      },
      decaying);
  return cudaGetLastError();
}

}  // namespace stratagem
