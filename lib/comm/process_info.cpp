#include "comm/process_info.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

gpu::Device device_of(int node_rank) {
  int const gpus = gpu::availability().count;
  if (gpus == 0) return {};
  return {.kind = gpu::DeviceKind::cuda, .index = node_rank % gpus};
}

/// Tells the GPUs of a node apart: launchers may show each rank other ones, all numbered from 0.
std::string identity(gpu::Device const& device) {
  if (device.kind == gpu::DeviceKind::cpu) return {};
  char const* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return str(visible != nullptr ? visible : "", "#", device.index);
}

}  // namespace

ProcessInfo discover_process() {
  return {.host = host_name(), .cores = usable_cores(), .device = device_of(0)};
}

ProcessInfo discover_process(mpi::Comm const& world) {
  auto info = discover_process();
  auto const node = world.split_node();
  info.rank = world.rank();
  info.size = world.size();
  info.node_rank = node.rank();
  info.node_size = node.size();
  auto const firsts = world.all_gather(node.rank() == 0 ? "first" : "");
  info.nodes = static_cast<int>(std::count(firsts.begin(), firsts.end(), "first"));
  info.device = device_of(info.node_rank);
  auto const own = identity(info.device);
  auto const devices = node.all_gather(own);
  info.shares_device = !own.empty() && std::count(devices.begin(), devices.end(), own) > 1;
  return info;
}

}  // namespace stratagem
