#include "observe/collect/ebpf/intake.h"

#include <signal.h>

#include <limits>

namespace assay::collect {

EbpfIntake::EbpfIntake(EbpfPrograms& programs, std::chrono::milliseconds timeout)
    : programs_(programs), timeout_(timeout), last_taken_(std::chrono::steady_clock::now()) {
  // Signals are handled by the collector's main thread.
  sigset_t all{};
  sigset_t before{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { keep_ring_empty(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

EbpfIntake::~EbpfIntake() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::size_t EbpfIntake::take(const EbpfPrograms::Receiver& receive, std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::size_t taken = 0;
  for (; taken < most && !saved_.empty(); ++taken) {
    const SavedMessage& saved = saved_.front();
    receive(saved.message, saved.path, saved.other);
    saved_.pop_front();
  }
  if (taken < most) taken += programs_.take(receive, most - taken);
  last_taken_ = std::chrono::steady_clock::now();
  return taken;
}

void EbpfIntake::keep_ring_empty() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, timeout_, [this] { return over_; })) {
    if (std::chrono::steady_clock::now() - last_taken_ < timeout_) continue;
    programs_.take(
        [this](const assay_message& message, std::string_view path, std::string_view other) {
          saved_.push_back({message, std::string(path), std::string(other)});
        },
        std::numeric_limits<std::size_t>::max());
  }
}

}  // namespace assay::collect
