#include "comm/mpi/submission.hpp"

#include "comm/work/delayed_operation.hpp"

namespace stratagem {

Submission::Submission(Progress& progress, gpu::Device const& device, trace::Recorder* recorder,
                       int rank, std::chrono::nanoseconds delay)
    : progress_(progress),
      staging_(device),
      delay_(delay),
      random_(static_cast<std::uint64_t>(rank), "delays") {
  for (auto const* name : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
                           "send", "receive", "rma", "open_group"})
    names_.push_back(recorder != nullptr ? recorder->intern(name) : 0);
}

Work Submission::run(Name name, std::vector<Argument> arguments, int peer, std::size_t queue,
                     std::int64_t& bytes_sent, Make const& make) {
  std::int64_t bytes = 0;
  auto operation =
      staging_.stage(std::move(arguments), [&](std::vector<at::Tensor> const& tensors) {
        auto made = make(tensors);
        bytes_sent += bytes = made.second;
        return std::move(made.first);
      });
  return submit(name, {std::move(operation), bytes}, peer, queue);
}

Work Submission::submit(Name name, Made made, int peer, std::size_t queue) {
  auto& [operation, bytes] = made;
  if (delay_.count() > 0) {
    auto const share = to_unit_float(random_.word(submitted_++));
    auto const delay = std::chrono::duration_cast<std::chrono::nanoseconds>(delay_ * share);
    operation = std::make_unique<DelayedOperation>(std::move(operation), delay);
  }
  return progress_.submit(
      std::move(operation),
      {.name = names_[static_cast<std::size_t>(name)], .bytes = bytes, .peer = peer}, queue);
}

}  // namespace stratagem
