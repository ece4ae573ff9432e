// EbpfIntake: where the collector takes messages from. While it is held up (a large file is hashed
// before it is overwritten) the kernel's ring buffer would fill and events would be lost, so a
// thread looks after it then and keeps the messages in memory, in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "observe/collect/ebpf/programs.h"

namespace assay::collect {

class EbpfIntake {
 public:
  // How long the collector may be away before the thread takes over.
  static constexpr std::chrono::milliseconds kPatience{50};

  explicit EbpfIntake(EbpfPrograms& programs, std::chrono::milliseconds patience = kPatience);
  EbpfIntake(const EbpfIntake&) = delete;
  EbpfIntake& operator=(const EbpfIntake&) = delete;
  ~EbpfIntake();

  // As EbpfPrograms::take, what the thread kept first.
  std::size_t take(const EbpfPrograms::Receiver& receive, std::size_t most);
  // Messages that the thread kept so far.
  std::uint64_t kept_in_all();

 private:
  struct Kept {
    assay_message message{};
    std::string path;
    std::string other;
  };
  void look_after();

  EbpfPrograms& programs_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::chrono::steady_clock::time_point last_taken_;
  std::deque<Kept> kept_;
  std::uint64_t kept_in_all_ = 0;
  std::thread thread_;
};

}  // namespace assay::collect
