#include "comm/mpi/mpi_world.hpp"

#include <exception>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "comm/ranks_text.hpp"
#include "comm/serial/serial_communicator.hpp"

namespace stratagem {
namespace {

/// Something else than an operation on tensors.
class Call final : public Operation {
 public:
  explicit Call(std::function<void()> act) : act_(std::move(act)) {}
  std::string_view name() const override { return "open_group"; }
  State advance() override {
    act_();
    return State::finished;
  }
  bool collective() const override { return true; }

 private:
  std::function<void()> act_;
};

std::string remark_on(OpenedArena const& node) {
  if (node.failure.empty()) return {};
  return str("ranks exchange messages, because they cannot share memory: ", node.failure);
}

}  // namespace

MpiWorld::MpiWorld(mpi::Comm const& comm, gpu::Device const& device, trace::Recorder* recorder,
                   std::chrono::nanoseconds timeout, std::chrono::nanoseconds delay,
                   std::unique_ptr<PeriodicTask> periodic_task, NodeUse const& node)
    : comm_(comm.duplicate()),
      device_(device),
      node_(open_arena(comm_, node, device)),
      submission_(progress_, device, recorder, comm.rank(), delay),
      all_(comm_, device, std::move(node_.all), submission_, 0, remark_on(node_)),
      mismatch_check_(comm_, all_.collectives()),
      progress_(recorder, timeout, &mismatch_check_, std::move(periodic_task)) {}

void MpiWorld::call(std::function<void(mpi::Comm const&)> const& act) {
  std::exception_ptr failure;
  auto guarded = [&] {
    try {
      act(comm_);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  auto operation = std::make_unique<Call>(std::move(guarded));
  submission_.submit(Submission::Name::open_group, {std::move(operation), 0}, -1, 0).wait_on_host();
  if (failure) std::rethrow_exception(failure);
}

std::vector<std::string> MpiWorld::gather(std::string const& text) {
  std::vector<std::string> texts;
  call([&](mpi::Comm const& all) { texts = all.all_gather(text); });
  return texts;
}

std::unique_ptr<Communicator> MpiWorld::open(std::string const& name,
                                             std::vector<int> const& ranks) {
  std::unique_ptr<Communicator> opened;
  auto const queue = queues_++;
  call([&](mpi::Comm const& all) {
    auto const group = all.split(ranks.front());
    if (group.size() == 1) return;
    auto made = std::make_unique<MpiCommunicator>(group, device_, open_group(group, node_),
                                                  submission_, queue);
    mismatch_check_.add(group, str(name, '(', join_ranks(ranks, ","), ')'), made->collectives());
    opened = std::move(made);
  });
  if (!opened) opened = std::make_unique<SerialCommunicator>(device_);
  return opened;
}

}  // namespace stratagem
