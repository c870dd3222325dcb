#include "strategy/fedavg/fedavg.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "strategy/pass/micro_batches.hpp"

namespace stratagem {

using trace::Phase;

namespace {

constexpr double most_clipped = 0.01;  // that nobody is told of

/// All of a round. Samples that belong to nobody are those of clients with one each.
std::vector<DrawnClient> clients_of(Batch const& batch, int drawn) {
  if (!batch.clients.empty()) return batch.clients;
  std::vector<DrawnClient> clients;
  for (int number = 0; number < drawn; ++number) clients.push_back({number, 1});
  return clients;
}

std::int64_t samples_of(std::span<DrawnClient const> clients) {
  return std::accumulate(clients.begin(), clients.end(), std::int64_t{0},
                         [](auto sum, auto const& client) { return sum + client.samples; });
}

std::int64_t samples_of(std::span<DrawnClient const> clients, Answers const& answers) {
  std::int64_t samples = 0;
  for (int const place : answers.living)
    samples += clients[static_cast<std::size_t>(place)].samples;
  return samples;
}

}  // namespace

FedAvg::FedAvg(FedAvgPlan const& plan, StrategyParts const& parts)
    : plan_(plan),
      parts_(parts),
      replica_(parts.model, parts.precision.compute, parts.device, parts.seed),
      begin_(parts.allocate(gpu::MemoryCategory::optimizer, all().size())),
      gradient_(parts.allocate(gpu::MemoryCategory::gradients, all().size())),
      store_(replica_, gradient_),
      status_(parts.allocate(gpu::MemoryCategory::gradients, status_room)),
      passes_(parts) {
  if (plan_.has_momentum())
    momentum_ = parts.allocate(gpu::MemoryCategory::optimizer, all().size());
  {
    gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
    codes_ = at::zeros_like(gradient_, gradient_.options().dtype(at::kInt));
    sum_ = parts.world.all().allocate(all().size(), at::kInt);
    if (plan_.is_secure()) messages_ = parts.world.all().allocate(plan_.message_room(), at::kByte);
  }
  for (int place = 0; place < plan_.clients_of_rank(); ++place)
    buffers_.push_back(make_buffers(parts.model, parts.device, parts.precision.compute));
  begin_optimizer();
}

void FedAvg::begin_optimizer() {
  update_.reset();
  update_.emplace(parts_.optimizer, parts_.precision, 1, plan_.config.micro_batches,
                  all_elements(replica_.layout()), parts_.device);
}

StepResult FedAvg::step(Batch const& batch, StepOptions const& options) {
  status_.begin(options, options.compare_replicas ? ReplicaHashes(replicas()) : ReplicaHashes());
  status_.clear();
  auto const clients = clients_of(batch, plan_.drawn);
  auto const answers = answers_of(plan_.drawn, plan_.config.lost, parts_.seed, batch.step);
  FixedPoint const codes(samples_of(clients), plan_.config.largest_change);
  begin_.copy_(replica_.flat());
  sum_.zero_();
  auto secure = begin_secure(batch.step);
  auto const shares = split(batch, plan_.clients_of_rank());
  for (std::size_t place = 0; place < shares.size(); ++place) {
    auto const& client = clients[static_cast<std::size_t>(number_of(place))];
    train(place, client, shares[place], options.lr);
    if (answers.lives(number_of(place))) add_change(place, client, codes, batch.step, secure);
  }
  if (secure) secure->unmask(answers, sum_);
  if (secure && !failure_) failure_ = secure->failure();
  auto const result = exchange(batch);
  step_of_server(codes, samples_of(clients, answers));
  return result;
}

std::optional<SecureRound> FedAvg::begin_secure(std::int64_t round) const {
  if (!plan_.is_secure()) return {};
  return std::optional<SecureRound>(std::in_place, plan_.neighbourhood(), parts_, messages_, round);
}

void FedAvg::train(std::size_t place, DrawnClient const& client, Batch const& share, double lr) {
  replica_.flat().copy_(begin_);
  replica_.refresh(all());
  begin_optimizer();
  for (auto const& of_step : split(share, plan_.config.local_steps)) {
    pass(place, client, of_step);
    parts_.recorder.enter(Phase::optimizer);
    update_->begin();
    update_->apply(all(), replica_.flat(), gradient_, lr);
    replica_.refresh(all());
  }
}

void FedAvg::pass(std::size_t place, DrawnClient const& client, Batch const& of_step) {
  auto const noted = [&](CrossEntropy const& loss) {
    status_.note(loss, passes_.kept());
    if (!failure_ && !std::isfinite(loss.loss.item<double>()))
      failure_ = bad_loss(
          str("the loss of client ", client.number, " is not finite at step ", of_step.step),
          parts_.model, passes_.kept().first_non_finite());
  };
  passes_.run_all(
      store_, buffers_[place], of_step, plan_.config.micro_batches,
      [this](Batch const& micro) { return parts_.context_of(micro, 1); }, noted);
}

void FedAvg::add_change(std::size_t place, DrawnClient const& client, FixedPoint const& codes,
                        std::int64_t step, std::optional<SecureRound>& secure) {
  at::sub_out(gradient_, replica_.flat(), begin_);
  if (!gradient_.isfinite().all().item<bool>()) {
    if (!failure_)
      failure_ =
          Error(ExitCode::non_finite,
                str("the parameters of client ", client.number, " are not finite at step ", step),
                "though its losses are", "lower optimizer.lr or look at the data");
    return;
  }
  clipped_ += codes.code(gradient_, client.samples, codes_);
  coded_ += gradient_.numel();
  if (secure) secure->mask(place, codes_);
  sum_.add_(codes_);
}

StepResult FedAvg::exchange(Batch const& batch) {
  parts_.recorder.enter(Phase::comm_exposed);
  auto& communicator = parts_.world.all();
  if (failure_) status_.refuse();
  status_.seal(status_.fingerprint(communicator.collectives()));
  auto agreement = communicator.all_reduce(status_.memory());
  communicator.all_reduce(sum_).wait_on_stream();
  agreement.wait_on_stream();
  status_.fetch_sum();
  auto const [result, finite, alike] = status_.result(
      batch, {.ranks = plan_.ranks, .reporters = plan_.ranks, .passes = plan_.passes_of_rank()});
  if (!alike) refuse_difference(communicator, status_.hashes(), batch.step);
  if (!finite) agree(communicator, failure_);
  ensures(finite, "a rank that refuses says why");
  return result;
}

void FedAvg::step_of_server(FixedPoint const& codes, std::int64_t samples) {
  parts_.recorder.enter(Phase::optimizer);
  codes.mean_of(sum_, samples, gradient_);
  if (plan_.has_momentum()) momentum_.mul_(plan_.config.server_momentum).add_(gradient_);
  auto const& change = plan_.has_momentum() ? momentum_ : gradient_;
  replica_.flat().copy_(begin_).add_(change, plan_.config.server_lr);
  replica_.refresh(all());
}

std::string FedAvg::report() {
  auto const counts = parts_.world.all().allocate(2, at::kLong);
  counts.copy_(at::tensor({std::exchange(clipped_, 0), std::exchange(coded_, 0)}, at::kLong));
  parts_.world.all().all_reduce(counts).wait_on_stream();
  auto const of_all = counts.to(at::kCPU, at::kDouble);
  auto const share = of_all[0].item<double>() / std::max(of_all[1].item<double>(), 1.0);
  if (parts_.world.all().rank() != 0 || share <= most_clipped) return {};
  return str("warning: ", format_number(100 * share, 1),
             " % of the clients' changes were clipped: raise strategy.largest_change");
}

OptimizerState FedAvg::kept() const {
  if (!plan_.has_momentum()) return {};
  return {{FedAvgConfig::momentum_sum, momentum_}};
}

NamedTensors FedAvg::replicas() const {
  auto tensors = replica_.views(replica_.flat(), "parameters/");
  for (auto const& [kind, flat] : kept())
    std::ranges::copy(replica_.views(flat, kind + "/"), std::back_inserter(tensors));
  return tensors;
}

State FedAvg::state() {
  State state{.of_parameters = replica_.state(kept()), .replicas = replicas()};
  for (std::size_t place = 0; place < buffers_.size(); ++place)
    state.buffers.emplace(number_of(place), buffers_[place]);
  return state;
}

}  // namespace stratagem
