#pragma once

#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/communicator.hpp"

namespace stratagem::test {

/// Numbers that only this worker writes in this step: torn or mixed data show.
inline at::Tensor pattern(int worker, int step, std::int64_t numel) {
  return at::arange(numel, at::kLong) + 1'000'000 * worker + 1'000'000'000L * step;
}

/// The last rank has memory: a slot for each other rank, then a part that all read. In every step
/// each puts its pattern, and then gets the sum of all.
inline void put_and_get(Communicator& communicator, int steps, std::int64_t numel) {
  int const owner = communicator.size() - 1, workers = owner;
  constexpr int put_tag = 4, get_tag = 6;
  bool const owns = communicator.rank() == owner;
  auto const memory = communicator.share_memory(owns ? (workers + 1) * numel : 0, at::kLong);
  auto const part = [&](int number) { return memory->local().narrow(0, number * numel, numel); };
  for (int step = 0; step < steps; ++step) {
    if (!owns) {
      auto const own = pattern(communicator.rank(), step, numel);
      auto put = memory->put(own, owner, communicator.rank() * numel, put_tag);
      auto sum = at::zeros({numel}, at::kLong);
      memory->get(sum, owner, workers * numel, get_tag).wait_on_host();
      auto expected = at::zeros({numel}, at::kLong);
      for (int worker = 0; worker < workers; ++worker) expected.add_(pattern(worker, step, numel));
      ASSERT_TRUE(at::equal(sum, expected)) << "step " << step;
      continue;
    }
    auto const sum = at::zeros({numel}, at::kLong);
    for (int worker = 0; worker < workers; ++worker) {
      memory->await_put(worker, put_tag).wait_on_host();
      ASSERT_TRUE(at::equal(part(worker), pattern(worker, step, numel))) << "step " << step;
      sum.add_(part(worker));
    }
    part(workers).copy_(sum);
    std::vector<Work> offers;
    for (int worker = 0; worker < workers; ++worker)
      offers.push_back(memory->offer(worker, get_tag, part(workers).nbytes()));
    for (auto& offer : offers) offer.wait_on_host();
    part(workers).fill_(-1);  // nobody reads any more
  }
}

}  // namespace stratagem::test
