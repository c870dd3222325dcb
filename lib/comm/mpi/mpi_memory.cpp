#include "comm/mpi/mpi_memory.hpp"

#include <exception>

#include <ATen/ATen.h>

#include "comm/communicator.hpp"

namespace stratagem {
namespace {

constexpr int nobody = -1;

RemotePlace place_of(at::Tensor const& tensor, int peer, std::int64_t offset, int tag) {
  return {peer, static_cast<std::size_t>(offset) * tensor.element_size(), tag};
}

}  // namespace

MpiMemory::MpiMemory(mpi::Comm const& comm, std::int64_t numel, at::ScalarType type,
                     Staging& staging, Submit submit)
    : comm_(comm), staging_(staging), submit_(std::move(submit)) {
  auto const opened = std::make_shared<OpenedWindow>();
  auto const bytes = static_cast<std::size_t>(numel) * at::elementSize(type);
  submit_(std::make_unique<OpenWindow>(comm_, bytes, opened), nobody, 0).wait_on_host();
  if (opened->failure) throw AgreedError(*opened->failure);
  window_ = std::move(opened->window);
  local_ = numel > 0 ? at::from_blob(window_->local().data(), {numel}, type) : at::empty({0}, type);
}

MpiMemory::~MpiMemory() {
  if (std::uncaught_exceptions() == 0)
    static_cast<void>(submit_(std::make_unique<CloseWindow>(std::move(window_)), nobody, 0));
  else  // cannot be closed without the others; left to the end of the process
    static_cast<void>(window_.release());
}

Work MpiMemory::put(at::Tensor const& source, int peer, std::int64_t offset, int tag) {
  auto operation = staging_.stage({{source, Argument::Role::in}}, [&](auto const& copies) {
    auto const place = place_of(copies[0], peer, offset, tag);
    return std::make_unique<PutOperation>(comm_, *window_, copies[0], place);
  });
  return submit_(std::move(operation), peer, bytes_of(source));
}

Work MpiMemory::await_put(int peer, int tag) {
  return submit_(std::make_unique<AwaitPut>(comm_, *window_, peer, tag), peer, 0);
}

Work MpiMemory::get(at::Tensor const& target, int peer, std::int64_t offset, int tag) {
  auto operation = staging_.stage({{target, Argument::Role::out}}, [&](auto const& copies) {
    auto const place = place_of(copies[0], peer, offset, tag);
    return std::make_unique<GetOperation>(comm_, *window_, copies[0], place);
  });
  return submit_(std::move(operation), peer, 0);
}

Work MpiMemory::offer(int peer, int tag, std::int64_t bytes) {
  return submit_(std::make_unique<OfferOperation>(comm_, *window_, peer, tag), peer, bytes);
}

}  // namespace stratagem
