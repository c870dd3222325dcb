#include "params/initialise.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/random.hpp"

namespace stratagem {
namespace {

double drawn(Initialiser const& init, CounterRandom const& random, std::uint64_t element,
             std::array<double, 4> const& normals) {
  double value = normals[element % 4];
  if (init.kind == Initialiser::Kind::normal) return init.a + init.b * value;
  // Truncated normal: redraws use sequences of their own, so that elements do not affect each
  // other.
  for (std::uint64_t attempt = 1; std::abs(init.b * value) > init.a; ++attempt)
    value = to_normal(random.block(element / 4, attempt))[element % 4];
  return init.b * value;
}

/// Elements [begin, end) of the whole tensor's sequence.
void draw(Initialiser const& init, CounterRandom const& random, std::int64_t begin,
          std::int64_t end, float* out) {
  for (auto i = static_cast<std::uint64_t>(begin); i < static_cast<std::uint64_t>(end);) {
    auto const words = random.block(i / 4);
    auto const stop = std::min<std::uint64_t>((i / 4 + 1) * 4, static_cast<std::uint64_t>(end));
    if (init.kind == Initialiser::Kind::uniform) {
      for (; i < stop; ++i)
        *out++ = static_cast<float>(init.a + (init.b - init.a) *
                                                 static_cast<double>(to_unit_float(words[i % 4])));
    } else {
      auto const normals = to_normal(words);
      for (; i < stop; ++i) *out++ = static_cast<float>(drawn(init, random, i, normals));
    }
  }
}

}  // namespace

void initialise(at::Tensor const& view, ParameterSpec const& spec, std::uint64_t seed) {
  at::NoGradGuard const no_grad;
  if (spec.initialiser.kind == Initialiser::Kind::constant) {
    view.fill_(spec.initialiser.a);
    return;
  }
  CounterRandom const random(seed, spec.name);
  auto const numel = spec.numel();
  auto const first = spec.is_part() ? numel / spec.shape.front() * spec.row_begin : 0;
  auto values = at::empty(spec.shape, at::kFloat);
  auto* out = values.data_ptr<float>();
  at::parallel_for(0, numel, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    draw(spec.initialiser, random, first + begin, first + end, out + begin);
  });
  view.copy_(values);
}

void initialise(at::Tensor const& flat, ParameterLayout const& layout, std::uint64_t seed) {
  flat.zero_();
  for (auto const& entry : layout.entries()) initialise(view_of(flat, entry), entry.spec, seed);
}

}  // namespace stratagem
