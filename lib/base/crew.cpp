#include "base/crew.hpp"

#include "base/contract.hpp"
#include "base/system.hpp"

namespace stratagem {

Crew::Crew(int size, std::string const& name) {
  expects(size >= 1, "the calling thread is one of the crew");
  for (int member = 1; member < size; ++member)
    helpers_.emplace_back([this, member, name](std::stop_token const& stop) {
      name_thread(name);
      help(member, stop);
    });
}

Crew::~Crew() {
  for (auto& helper : helpers_) helper.request_stop();
}

void Crew::for_each(std::int64_t count, Work const& work) {
  {
    std::lock_guard const lock(mutex_);
    work_ = &work;
    count_ = count;
    next_ = 0;
    failure_ = nullptr;
    busy_ = static_cast<int>(helpers_.size());
    ++call_;
  }
  changed_.notify_all();
  take_pieces(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void Crew::help(int member, std::stop_token const& stop) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return call_ != seen; })) {
    seen = call_;
    lock.unlock();
    take_pieces(member);
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

void Crew::take_pieces(int member) {
  while (true) {
    auto const piece = next_.fetch_add(1);
    if (piece >= count_) return;
    try {
      (*work_)(piece, member);
    } catch (...) {
      std::lock_guard const lock(mutex_);
      if (!failure_ || piece < failed_) {
        failed_ = piece;
        failure_ = std::current_exception();
      }
      next_ = count_;
    }
  }
}

}  // namespace stratagem
