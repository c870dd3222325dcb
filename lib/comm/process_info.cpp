#include "comm/process_info.hpp"

#include <algorithm>
#include <set>

#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// The GPU of the n-th rank that wants one.
gpu::Device device_of(std::ptrdiff_t number) {
  int const gpus = gpu::availability().count;
  if (gpus == 0) return {};
  return {.kind = gpu::DeviceKind::cuda, .index = static_cast<int>(number % gpus)};
}

/// Identifies all GPUs of the run: a launcher may show different GPUs to each rank, all numbered
/// from 0.
std::string identity(gpu::Device const& device) {
  if (device.kind == gpu::DeviceKind::cpu) return {};
  return host_name() + " " + gpu::device_address(device);
}

}  // namespace

ProcessInfo discover_process() {
  return {.host = host_name(), .cores = usable_cores(), .device = device_of(0)};
}

ProcessInfo discover_process(mpi::Comm const& world, bool computes) {
  auto info = discover_process();
  auto const node = world.split_node();
  info.rank = world.rank();
  info.size = world.size();
  info.node_rank = node.rank();
  info.node_size = node.size();
  auto const firsts = world.all_gather(node.rank() == 0 ? "first" : "");
  info.nodes = static_cast<int>(std::count(firsts.begin(), firsts.end(), "first"));
  auto const on_node = node.all_gather(computes ? "computes" : "");
  auto const number = std::count(on_node.begin(), on_node.begin() + info.node_rank, "computes");
  info.device = computes ? device_of(number) : gpu::Device{};
  auto const devices = world.all_gather(identity(info.device));
  std::set<std::string> const different(devices.begin(), devices.end());
  bool const no_gpus = different == std::set<std::string>{""};
  info.shares_device = !no_gpus && (different.size() < devices.size() || different.contains(""));
  return info;
}

}  // namespace stratagem
