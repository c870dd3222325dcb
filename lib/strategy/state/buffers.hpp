#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "gpu/device.hpp"
#include "model/model.hpp"
#include "optim/optim_config.hpp"
#include "strategy/state/named_tensors.hpp"

namespace stratagem {

/// The running statistics of one worker, by block. Every worker keeps its own, whatever becomes of
/// the parameters.
using Buffers = std::vector<std::vector<at::Tensor>>;

Buffers make_buffers(Model const& model, gpu::Device const& device, Precision precision);
/// What make_buffers() allocates [B].
std::int64_t buffer_bytes(Model const& model, Precision precision);

/// (((b_0 + b_1) + b_2) + ...) / N elementwise; counters take the first worker's value.
at::Tensor average(std::vector<at::Tensor> const& workers);
/// Of every buffer.
Buffers average(std::vector<Buffers> const& workers);
/// The same over the workers of all ranks; `own`: those that this rank plays. Empty on a rank that
/// plays none. Collective.
Buffers average(std::map<int, Buffers> const& own, Communicator& communicator);

/// By name, on the CPU.
NamedTensors named(Model const& model, Buffers const& buffers);
/// Replaces those that `tensors` names.
void load(Model const& model, std::map<std::string, at::Tensor> const& tensors,
          Buffers const& buffers);

}  // namespace stratagem
