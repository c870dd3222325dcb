#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/error.hpp"
#include "comm/work/operation.hpp"
#include "mpi/comm.hpp"
#include "mpi/window.hpp"

namespace stratagem {

/// A window, or the reason why there is none.
struct OpenedWindow {
  std::unique_ptr<mpi::Window> window;
  std::optional<Error> failure;
};

class OpenWindow final : public Operation {
 public:
  OpenWindow(mpi::Comm const& comm, std::size_t bytes, std::shared_ptr<OpenedWindow> result)
      : comm_(comm), bytes_(bytes), result_(std::move(result)) {}
  std::string_view name() const override { return "open_window"; }
  State advance() override;
  bool collective() const override { return true; }

 private:
  mpi::Comm comm_;
  std::size_t bytes_;
  std::shared_ptr<OpenedWindow> result_;
};

class CloseWindow final : public Operation {
 public:
  explicit CloseWindow(std::unique_ptr<mpi::Window> window) : window_(std::move(window)) {}
  /// A window that the progress thread did not close is left to the end of the process.
  ~CloseWindow() override { static_cast<void>(window_.release()); }
  std::string_view name() const override { return "close_window"; }
  State advance() override;
  bool collective() const override { return true; }

 private:
  std::unique_ptr<mpi::Window> window_;
};

/// The target of a transfer: memory of a rank, and the tag of the message about it.
struct RemotePlace {
  int peer = 0;
  std::size_t offset = 0;  ///< [B]
  int tag = 0;
};

/// Data, flush, then an empty message.
class PutOperation final : public Operation {
 public:
  PutOperation(mpi::Comm const& comm, mpi::Window const& window, at::Tensor source,
               RemotePlace const& place)
      : comm_(comm), window_(window), source_(std::move(source)), place_(place) {}
  std::string_view name() const override { return "put"; }
  State advance() override;
  bool collective() const override { return false; }

 private:
  mpi::Comm comm_;
  mpi::Window const& window_;
  at::Tensor source_;
  RemotePlace place_;
  std::optional<mpi::Request> told_;
};

/// The other end of a put.
class AwaitPut final : public Operation {
 public:
  AwaitPut(mpi::Comm const& comm, mpi::Window const& window, int peer, int tag)
      : comm_(comm), window_(window), peer_(peer), tag_(tag) {}
  std::string_view name() const override { return "await_put"; }
  State advance() override;
  bool collective() const override { return false; }

 private:
  mpi::Comm comm_;
  mpi::Window const& window_;
  int peer_, tag_;
  std::optional<mpi::Request> heard_;
};

/// An empty message from the owner, then the data, then an empty message back with the next tag.
class GetOperation final : public Operation {
 public:
  GetOperation(mpi::Comm const& comm, mpi::Window const& window, at::Tensor target,
               RemotePlace const& place)
      : comm_(comm), window_(window), target_(std::move(target)), place_(place) {}
  std::string_view name() const override { return "get"; }
  State advance() override;
  bool collective() const override { return false; }

 private:
  mpi::Comm comm_;
  mpi::Window const& window_;
  at::Tensor target_;
  RemotePlace place_;
  std::optional<mpi::Request> heard_, told_;
};

/// The other end of a get.
class OfferOperation final : public Operation {
 public:
  OfferOperation(mpi::Comm const& comm, mpi::Window const& window, int peer, int tag)
      : comm_(comm), window_(window), peer_(peer), tag_(tag) {}
  std::string_view name() const override { return "offer"; }
  State advance() override;
  bool collective() const override { return false; }

 private:
  mpi::Comm comm_;
  mpi::Window const& window_;
  int peer_, tag_;
  std::vector<mpi::Request> requests_;
};

}  // namespace stratagem
