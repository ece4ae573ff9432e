// EbpfIntake: reads the BPF programs' messages. While the collector is busy (hashing a large file
// before it is overwritten) the kernel's ring buffer would overflow, so a thread empties it then
// and keeps the messages in memory, in order.
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
  // How long the collector may be busy before the thread takes over.
  static constexpr std::chrono::milliseconds kTimeout{50};

  explicit EbpfIntake(EbpfPrograms& programs, std::chrono::milliseconds timeout = kTimeout);
  EbpfIntake(const EbpfIntake&) = delete;
  EbpfIntake& operator=(const EbpfIntake&) = delete;
  ~EbpfIntake();

  // As EbpfPrograms::take(), after the messages that the thread saved.
  std::size_t take(const EbpfPrograms::Receiver& receive, std::size_t most);

 private:
  struct SavedMessage {
    assay_message message{};
    std::string path;
    std::string other;
  };
  void keep_ring_empty();

  EbpfPrograms& programs_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::chrono::steady_clock::time_point last_taken_;
  std::deque<SavedMessage> saved_;
  std::thread thread_;
};

}  // namespace assay::collect
