#include <algorithm>
#include <array>
#include <limits>

#include "gpu/layers/cross_entropy.hpp"
#include "gpu/layers/elementary.hpp"
#include "gpu/layers/host_types.hpp"

namespace stratagem::gpu {
namespace {

constexpr std::size_t threads = CrossEntropyPass::threads;

/// Of what each thread has.
template <class Number>
Number sum_of(std::array<Number, threads>& of_threads) {
  for (auto apart = threads / 2; apart > 0; apart /= 2)
    for (std::size_t i = 0; i < apart; ++i) of_threads[i] += of_threads[i + apart];
  return of_threads[0];
}

template <class T>
void row(CrossEntropyPass const& pass, std::int64_t number) {
  auto const* logits = static_cast<T const*>(pass.logits) + number * pass.classes;
  auto* gradient = static_cast<T*>(pass.gradient) + number * pass.classes;
  float largest = -std::numeric_limits<float>::infinity();
  std::int64_t predicted = pass.classes;  // none
  for (std::int64_t c = 0; c < pass.classes; ++c)
    if (float const logit = logits[c]; logit > largest || (logit == largest && c < predicted)) {
      largest = logit;
      predicted = c;
    }
  std::array<float, threads> of_threads{};
  for (std::int64_t c = 0; c < pass.classes; ++c)
    of_threads[static_cast<std::size_t>(c) % threads] +=
        exponential(static_cast<float>(logits[c]) - largest);
  float const sum = sum_of(of_threads), inverse = 1 / sum;
  float const share = pass.scale / static_cast<float>(pass.rows);
  auto const label = pass.labels[number];
  for (std::int64_t c = 0; c < pass.classes; ++c) {
    float const probability = exponential(static_cast<float>(logits[c]) - largest) * inverse;
    gradient[c] = static_cast<T>((c == label ? probability - 1 : probability) * share);
  }
  bool const known = label >= 0 && label < pass.classes;
  pass.row_losses[number] = known ? logarithm(sum) - (static_cast<float>(logits[label]) - largest)
                                  : std::numeric_limits<float>::quiet_NaN();
  pass.row_correct[number] = predicted == label ? 1 : 0;
}

template <class T>
void compute(CrossEntropyPass const& pass) {
  std::array<double, threads> losses{}, correct{};
  for (std::int64_t i = 0; i < pass.rows; ++i) {
    row<T>(pass, i);
    losses[static_cast<std::size_t>(i) % threads] += pass.row_losses[i];
    correct[static_cast<std::size_t>(i) % threads] += pass.row_correct[i];
  }
  *pass.loss = static_cast<float>(sum_of(losses) / static_cast<double>(pass.rows));
  *pass.correct = static_cast<float>(sum_of(correct));
}

}  // namespace

void cross_entropy_on_host(CrossEntropyPass const& pass) {
  with_type(pass.type, [&](auto zero) { compute<decltype(zero)>(pass); });
}

}  // namespace stratagem::gpu
