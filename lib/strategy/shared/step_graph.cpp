#include "strategy/shared/step_graph.hpp"

#include <cstring>
#include <string>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// Submitted anew before a graph is made: cuDNN tries its kernels in the first.
constexpr int warm_up_steps = 3;

}  // namespace

StepGraph::StepGraph(StrategyParts const& parts)
    : parts_(parts),
      keeps_(parts.graph && gpu::Graph::possible(parts.device)),
      next_step_word_(parts.device, sizeof(std::int64_t)) {
  if (keeps_)
    step_word_ = at::zeros({1}, at::TensorOptions().dtype(at::kLong).device(parts.device.torch()));
}

void StepGraph::run(Batch const& batch, double loss_scale, Work const& work) {
  if (!keeps_) {
    kind_.loss_scale = loss_scale;
    return work(batch);
  }
  Kind const kind{batch.inputs.sizes().vec(), batch.labels.sizes().vec(), batch.first_slot,
                  loss_scale};
  if (kind != kind_) {
    kept_.reset();
    batch_ = {};
    kind_ = kind;
    steps_of_kind_ = 0;
  }
  if (!kept_ && steps_of_kind_++ < warm_up_steps) return work(batch);
  bool const again = kept_ != nullptr;
  place(batch);
  if (!again && !capture(work)) return work(batch);
  if (!again) return kept_->graph->launch({}, {});
  parts_.world.repeat(kept_->collectives);
  auto const marks = parts_.recorder.repeat(kept_->phases);
  kept_->graph->launch(kept_->phases.of_step.marks, marks);
}

Context StepGraph::context_of(Batch const& micro) const {
  auto context = parts_.context_of(micro, kind_.loss_scale);
  if (!in_graph_) return context;
  context.step = 0;
  context.later = reinterpret_cast<std::uint64_t const*>(step_word_.data_ptr<std::int64_t>());
  return context;
}

/// In the order of the compute stream, like the graph.
void StepGraph::place(Batch const& batch) {
  at::NoGradGuard const no_grad;
  if (batch_.inputs.defined()) {
    batch_.inputs.copy_(batch.inputs);
    batch_.labels.copy_(batch.labels);
  } else {
    batch_ = batch;
    batch_.inputs = batch.inputs.clone();
    batch_.labels = batch.labels.clone();
    batch_.step = -1;  // the graph's steps are many
  }
  auto const word = batch.step << 32;
  std::memcpy(next_step_word_.data(), &word, sizeof(word));
  gpu::copy_async(step_word_.data_ptr(), next_step_word_.data(), sizeof(word),
                  gpu::Stream::compute(parts_.device));
}

bool StepGraph::capture(Work const& work) {
  auto const begin = monotonic_ns();
  auto kept = std::make_unique<Kept>();
  kept->work = work;
  auto const body = [this, kept = kept.get()] {
    in_graph_ = true;
    kept->work(batch_);
    in_graph_ = false;
  };
  try {
    kept->collectives = parts_.world.keep([&] {
      kept->phases = parts_.recorder.keep(
          [&] { kept->graph = std::make_unique<gpu::Graph>(parts_.device, body); });
    });
  } catch (Error const& failure) {
    in_graph_ = false;
    refuse(failure.what());
    return false;
  }
  auto const took = static_cast<double>(monotonic_ns() - begin) / 1e9;
  parts_.recorder.event(trace::Severity::info, "graph_captured",
                        str(kept->graph->nodes(), " nodes, ",
                            format_bytes(static_cast<double>(kept->graph->reserved_bytes())), ", ",
                            format_duration(took)));
  kept_ = std::move(kept);
  return true;
}

void StepGraph::refuse(std::string const& why) {
  keeps_ = false;
  if (parts_.world.all().size() > 1)
    throw Error(ExitCode::environment, "the work of a step cannot be kept as a graph", why,
                "take run.graph: off");
  parts_.recorder.event(trace::Severity::warning, "graph_refused", why);
}

}  // namespace stratagem
