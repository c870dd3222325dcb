#include "gpu/graph.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"
#include "gpu/memory.hpp"

namespace stratagem::gpu {

struct Graph::Impl {
  explicit Impl(Device const& of) : device(of) {}

  void capture(std::function<void()> const& body);
  void find_marks();

  Device device;
  at::cuda::CUDAGraph graph{/*keep_graph=*/true};
  std::map<cudaEvent_t, cudaGraphNode_t> marks;
  std::int64_t nodes = 0;
  std::int64_t reserved = 0;
  std::int64_t peak = 0;  ///< of all live memory while it runs [B]
};

/// LibTorch does not keep work of the default stream, so body runs with another one as the compute
/// stream. Calls that CUDA thinks unsafe while work is kept, such as asking for an event of other
/// work, are harmless here: everything that body uses lasts.
void Graph::Impl::capture(std::function<void()> const& body) {
  auto const index = static_cast<c10::DeviceIndex>(device.index);
  c10::cuda::CUDAStreamGuard const apart(c10::cuda::getStreamFromPool(false, index));
  graph.capture_begin({0, 0}, cudaStreamCaptureModeRelaxed);
  try {
    body();
  } catch (...) {
    try {
      graph.capture_end();
    } catch (c10::Error const&) {
      // What broke the capture is already on its way.
    }
    throw;
  }
  graph.capture_end();
}

void Graph::Impl::find_marks() {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph.raw_cuda_graph(), nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> all(count);
  check(cudaGraphGetNodes(graph.raw_cuda_graph(), all.data(), &count), "cudaGraphGetNodes");
  nodes = static_cast<std::int64_t>(count);
  for (auto node : all) {
    auto type = cudaGraphNodeTypeEmpty;
    check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    if (type != cudaGraphNodeTypeEventRecord) continue;
    cudaEvent_t event = nullptr;
    check(cudaGraphEventRecordNodeGetEvent(node, &event), "cudaGraphEventRecordNodeGetEvent");
    marks.emplace(event, node);
  }
}

bool Graph::possible(Device const& device) {
  return device.kind == DeviceKind::cuda;
}

Graph::Graph(Device const& device, std::function<void()> const& body)
    : impl_(std::make_unique<Impl>(device)) {
  synchronize(device);
  c10::cuda::CUDACachingAllocator::emptyCache();  // room for what the graph reserves
  auto const reserved = reserved_memory(device);
  auto const peak = peak_memory(device).total();
  reset_peak_memory(device);
  try {
    impl_->capture(body);
    impl_->graph.instantiate();
  } catch (c10::Error const& failure) {
    throw Error(ExitCode::environment, "the work of a step cannot be kept as a CUDA graph",
                failure.what_without_backtrace(), "take run.graph: off");
  }
  impl_->find_marks();
  impl_->peak = peak_memory(device).total();
  note_peak(std::max(peak, impl_->peak), device);
  impl_->reserved = static_cast<std::int64_t>(reserved_memory(device) - reserved);
}

Graph::~Graph() = default;

void Graph::launch(std::span<void* const> kept, std::span<void* const> marks) const {
  auto const execution = impl_->graph.raw_cuda_graph_exec();
  for (std::size_t i = 0; i < kept.size(); ++i)
    check(cudaGraphExecEventRecordNodeSetEvent(execution,
                                               impl_->marks.at(static_cast<cudaEvent_t>(kept[i])),
                                               static_cast<cudaEvent_t>(marks[i])),
          "cudaGraphExecEventRecordNodeSetEvent");
  check(cudaGraphLaunch(execution, torch_stream(impl_->device)), "cudaGraphLaunch");
  note_peak(impl_->peak, impl_->device);
}

std::int64_t Graph::nodes() const {
  return impl_->nodes;
}
std::int64_t Graph::reserved_bytes() const {
  return impl_->reserved;
}

}  // namespace stratagem::gpu
