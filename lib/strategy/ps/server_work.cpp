#include "strategy/server_work.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "base/contract.hpp"
#include "compress/codec.hpp"
#include "strategy/codes/compressed.hpp"
#include "strategy/ps/parameter_store.hpp"
#include "strategy/ps/ps_config.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t most_elements = 1 << 22;  // beyond what caches hold
constexpr int repeats = 5, workers = 2;

/// One of each kind of work.
constexpr std::array typical_modes{PsMode::sync, PsMode::async, PsMode::dc, PsMode::dana};

ServerPolicy policy_of_mode(PsMode mode) {
  return policy_of({.mode = mode}, workers);
}

/// What a worker has pushed: the message, or a code of as many elements.
class Pushed {
 public:
  Pushed(Compression const& compression, at::Tensor const& message) : message_(message) {
    if (!compression.on()) return;
    codec_.emplace(compression.code, compression.rounding, 0);
    code_.resize(static_cast<std::size_t>(codec_->wire_bytes(message.numel())));
  }

  void read(at::Tensor const& slot) const {
    if (codec_)
      codec_->decode(code_, numbers_of(slot));
    else
      slot.copy_(message_);
  }

 private:
  at::Tensor message_;
  std::optional<Codec> codec_;
  std::vector<std::byte> code_;
};

/// One push of each worker; parameters go into `message`.
void serve(ParameterStore& store, ServerPolicy const& policy, Pushed const& pushed,
           at::Tensor const& message) {
  FlatRange const all{0, message.numel()};
  for (int worker = 0; worker < workers; ++worker) pushed.read(store.slot(worker));
  if (!policy.asynchronous()) {
    store.add_up(all);
    store.begin_update();
    store.apply_sum(all, 0, 1);
    store.publish(all, 0);
  }
  for (int worker = 0; worker < workers; ++worker) {
    if (policy.asynchronous()) {
      store.take(worker, {}, true);
      store.hand_out(worker, 0);
    }
    message.copy_(policy.asynchronous() ? store.handed(worker) : store.outgoing());
  }
}

}  // namespace

std::vector<std::string_view> server_works() {
  std::vector<std::string_view> names;
  for (auto const mode : typical_modes) names.push_back(policy_of_mode(mode).work());
  return names;
}

double time_push(std::string_view work, OptimizerConfig const& optimizer, std::int64_t elements,
                 Compression const& compression) {
  auto const mode = std::ranges::find(typical_modes, work,
                                      [](PsMode each) { return policy_of_mode(each).work(); });
  expects(mode != typical_modes.end(), "a server's work has one of its names");
  auto const policy = policy_of_mode(*mode);
  auto const part = std::min(elements, most_elements);
  ParameterStore store(policy, optimizer, workers, at::zeros({part}));
  auto const message = at::zeros({part});
  Pushed const pushed(compression, message);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < repeats; ++i) {
    auto const begin = monotonic_ns();
    serve(store, policy, pushed, message);
    best = std::min(best, monotonic_ns() - begin);
  }
  auto const scale = static_cast<double>(elements) / static_cast<double>(part);
  return static_cast<double>(best) * 1e-9 * scale / workers;
}

}  // namespace stratagem
