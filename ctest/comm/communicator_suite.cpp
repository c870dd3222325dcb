#include "comm/communicator_suite.hpp"

#include <cstring>
#include <numeric>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace stratagem::test {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 7, 63, 1000, (1 << 18) + 3};
constexpr at::ScalarType types[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kInt};
constexpr std::int64_t many_pieces = 3'000'017;  // several MiB for each of four ranks

/// A copy in the memory that the group transfers fastest.
at::Tensor given(Communicator& comm, at::Tensor const& values) {
  return comm.allocate(values.numel(), values.scalar_type()).copy_(values);
}

/// Every size in every type.
void for_all_shapes(std::function<void(std::int64_t, at::ScalarType)> const& check) {
  for (auto const type : types)
    for (auto const numel : sizes) {
      SCOPED_TRACE(testing::Message() << numel << " " << at::toString(type));
      check(numel, type);
    }
}

void check_all_reduce(Communicator& comm, std::int64_t numel, at::ScalarType type) {
  auto const tensor = given(comm, values_of(comm.rank(), numel, type));
  comm.all_reduce(tensor).wait_on_host();
  EXPECT_TRUE(same_bits(tensor, sum_of_ranks(comm.size(), numel, type)));
}

void all_reduce(Communicator& comm) {
  for_all_shapes([&](auto numel, auto type) { check_all_reduce(comm, numel, type); });
}

void all_reduce_in_many_pieces(Communicator& comm) {
  check_all_reduce(comm, many_pieces, at::kFloat);
}

void reduce_scatter(Communicator& comm) {
  for_all_shapes([&](auto numel, auto type) {
    auto const input = given(comm, values_of(comm.rank(), comm.size() * numel, type));
    auto const kept = input.clone(), output = comm.allocate(numel, type);
    comm.reduce_scatter(output, input).wait_on_host();
    auto const sum = sum_of_ranks(comm.size(), comm.size() * numel, type);
    EXPECT_TRUE(same_bits(output, sum.narrow(0, comm.rank() * numel, numel)));
    EXPECT_TRUE(same_bits(input, kept));
  });
}

at::Tensor gathered(int ranks, std::int64_t numel, at::ScalarType type) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(values_of(rank, numel, type));
  return at::cat(parts);
}

void all_gather(Communicator& comm) {
  for_all_shapes([&](auto numel, auto type) {
    auto const output = comm.allocate(comm.size() * numel, type);
    comm.all_gather(output, given(comm, values_of(comm.rank(), numel, type))).wait_on_host();
    EXPECT_TRUE(same_bits(output, gathered(comm.size(), numel, type)));
  });
}

void all_gather_in_place(Communicator& comm) {
  for_all_shapes([&](auto numel, auto type) {
    auto const output = comm.allocate(comm.size() * numel, type);
    auto const own = output.narrow(0, comm.rank() * numel, numel);
    own.copy_(values_of(comm.rank(), numel, type));
    comm.all_gather(output, own).wait_on_host();
    EXPECT_TRUE(same_bits(output, gathered(comm.size(), numel, type)));
  });
}

void broadcast_from_every_root(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root)
    for_all_shapes([&](auto numel, auto type) {
      auto const tensor = given(comm, values_of(comm.rank(), numel, type));
      comm.broadcast(tensor, root).wait_on_host();
      EXPECT_TRUE(same_bits(tensor, values_of(root, numel, type)));
    });
}

/// Everybody to everybody: two messages under one tag, whose order counts, and one under another,
/// received first.
void send_and_receive(Communicator& comm) {
  for_all_shapes([&](auto numel, auto type) {
    std::vector<Work> works;
    std::vector<std::pair<at::Tensor, at::Tensor>> received_expected;
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      for (auto const& [tag, content] : {std::pair(9, 200), std::pair(4, 0), std::pair(4, 100)}) {
        auto const tensor = comm.allocate(numel, type);
        works.push_back(comm.receive(tensor, peer, tag));
        received_expected.emplace_back(tensor, values_of(peer + content, numel, type));
      }
      for (auto const& [tag, content] : {std::pair(4, 0), std::pair(4, 100), std::pair(9, 200)})
        works.push_back(
            comm.send(given(comm, values_of(comm.rank() + content, numel, type)), peer, tag));
    }
    for (auto& work : works) work.wait_on_host();
    for (auto const& [received, expected] : received_expected)
      EXPECT_TRUE(same_bits(received, expected));
  });
}

/// Nobody leaves before the last has come; all ranks share one clock here.
void barrier(Communicator& comm) {
  for (int i = 0; i < 20; ++i) {
    auto const times = comm.allocate(2, at::kLong), all = comm.allocate(2 * comm.size(), at::kLong);
    times[0].fill_(monotonic_ns());
    comm.barrier().wait_on_host();
    times[1].fill_(monotonic_ns());
    comm.all_gather(all, times).wait_on_host();
    auto const came_left = all.view({comm.size(), 2});
    EXPECT_LE(came_left.select(1, 0).max().item<std::int64_t>(),
              came_left.select(1, 1).min().item<std::int64_t>());
  }
}

void many_operations_in_flight(Communicator& comm) {
  auto const ranks = comm.size();
  for (int round = 0; round < 5; ++round) {
    std::vector<at::Tensor> sums, copies;
    std::vector<Work> works;
    for (int i = 0; i < 6; ++i) {
      auto const numel = 40'000 * ((i + round) % 3) + i;
      sums.push_back(given(comm, values_of(comm.rank(), numel, at::kFloat)));
      works.push_back(comm.all_reduce(sums.back()));
      copies.push_back(given(comm, values_of(comm.rank() + i, numel, at::kDouble)));
      works.push_back(comm.broadcast(copies.back(), i % ranks));
    }
    while (!works.empty()) {
      works.back().wait_on_host();
      works.pop_back();
    }
    for (int i = 0; i < 6; ++i) {
      auto const place = static_cast<std::size_t>(i);
      EXPECT_TRUE(same_bits(sums[place], sum_of_ranks(ranks, sums[place].numel(), at::kFloat)));
      EXPECT_TRUE(
          same_bits(copies[place], values_of(i % ranks + i, copies[place].numel(), at::kDouble)));
    }
  }
}

/// Memory of others on some ranks or all, for inputs and outputs.
void tensors_from_elsewhere(Communicator& comm) {
  constexpr std::int64_t numel = 70'000;
  auto const ranks = comm.size();
  for (int foreign = 0; foreign < 1 << 3; ++foreign) {
    auto const made = [&](std::int64_t count, int bit) {
      auto const own = comm.allocate(count, at::kFloat);
      bool const elsewhere = (foreign >> bit & 1) != 0 && (comm.rank() + bit) % 2 == 0;
      return elsewhere ? at::empty_like(own) : own;
    };
    auto const sum = made(numel, 0).copy_(values_of(comm.rank(), numel, at::kFloat));
    auto const wide =
        made(ranks * numel, 1).copy_(values_of(comm.rank(), ranks * numel, at::kFloat));
    auto const part = made(numel, 2), all = made(ranks * numel, 1);
    comm.all_reduce(sum).wait_on_host();
    comm.reduce_scatter(part, wide).wait_on_host();
    comm.all_gather(all, part).wait_on_host();
    EXPECT_TRUE(same_bits(sum, sum_of_ranks(ranks, numel, at::kFloat)));
    EXPECT_TRUE(same_bits(all, sum_of_ranks(ranks, ranks * numel, at::kFloat)));
  }
}

/// A Work that nobody waits for completes when it is dropped, together with its tensors.
void dropped_work(Communicator& comm) {
  for (int i = 0; i < 50; ++i) {
    auto const tensor = given(comm, values_of(comm.rank(), 1000 + i, at::kFloat));
    { auto const dropped = comm.all_reduce(tensor); }
    EXPECT_TRUE(same_bits(tensor, sum_of_ranks(comm.size(), 1000 + i, at::kFloat)));
    auto work = comm.all_reduce(given(comm, values_of(comm.rank(), 5000, at::kFloat)));
    work = comm.barrier();  // drops the other
    work.wait_on_host();
    work.wait_on_host();  // harmless
    EXPECT_TRUE(work.done());
  }
}

/// More operations than a communicator has tags.
void repeated_without_end(Communicator& comm) {
  auto const tensor = comm.allocate(3, at::kLong);
  std::vector<Work> works;
  for (std::int64_t i = 0; i < 4500; ++i) {
    tensor.fill_(comm.rank() + i);
    comm.all_reduce(tensor).wait_on_host();
    ASSERT_EQ(tensor[2].item<std::int64_t>(),
              comm.size() * (comm.size() - 1) / 2 + comm.size() * i);
  }
}

void counts_bytes(Communicator& comm) {
  auto const before = comm.bytes_sent();
  auto const own = comm.allocate(1000, at::kFloat);
  comm.all_gather(comm.allocate(comm.size() * 1000, at::kFloat), own).wait_on_host();
  EXPECT_EQ(comm.bytes_sent() - before, 4000 * (comm.size() - 1));
}

}  // namespace

std::vector<CommunicatorCase> communicator_cases() {
  return {{"AllReduce", all_reduce},
          {"AllReduceInManyPieces", all_reduce_in_many_pieces},
          {"ReduceScatter", reduce_scatter},
          {"AllGather", all_gather},
          {"AllGatherInPlace", all_gather_in_place},
          {"BroadcastFromEveryRoot", broadcast_from_every_root},
          {"SendAndReceive", send_and_receive},
          {"Barrier", barrier},
          {"ManyOperationsInFlight", many_operations_in_flight},
          {"TensorsFromElsewhere", tensors_from_elsewhere},
          {"DroppedWork", dropped_work},
          {"RepeatedWithoutEnd", repeated_without_end},
          {"CountsBytes", counts_bytes}};
}

at::Tensor values_of(int rank, std::int64_t numel, at::ScalarType type) {
  auto const phases = at::arange(numel, at::kDouble).mul_(0.7 + rank).add_(rank);
  return phases.sin_().mul_(1000).to(type);
}

at::Tensor sum_of_ranks(int ranks, std::int64_t numel, at::ScalarType type) {
  auto const wide = type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
  auto sum = values_of(0, numel, type).to(wide);
  for (int rank = 1; rank < ranks; ++rank) sum = sum + values_of(rank, numel, type).to(wide);
  return sum.to(type);
}

std::vector<int> every_second(int rank, int ranks) {
  std::vector<int> found;
  for (int other = rank % 2; other < ranks; other += 2) found.push_back(other);
  return found;
}

bool same_bits(at::Tensor const& a, at::Tensor const& b) {
  auto const ours = a.cpu().contiguous(), theirs = b.cpu().contiguous();
  return ours.scalar_type() == theirs.scalar_type() && ours.sizes() == theirs.sizes() &&
         (ours.numel() == 0 || std::memcmp(ours.data_ptr(), theirs.data_ptr(),
                                           static_cast<std::size_t>(bytes_of(ours))) == 0);
}

}  // namespace stratagem::test
