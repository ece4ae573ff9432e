// Threads: a fixed pool of threads that executes numbered tasks. Results do not depend on the
// number of threads, because a task computes the same result on any of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::train {

// The number of processors this process may run on.
int usable_processors();

class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  [[nodiscard]] int count() const { return static_cast<int>(workers_.size()) + 1; }
  // Runs task(0) … task(tasks - 1) in any order, also on the calling thread; returns when all are
  // done.
  void run(std::int64_t tasks, const std::function<void(std::int64_t)>& task);
  // Runs task(first, last) for consecutive ranges of up to `size` items.
  void ranges(std::int64_t items, std::int64_t size,
              const std::function<void(std::int64_t, std::int64_t)>& task);

 private:
  void work();
  void take_tasks();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable done_;
  const std::function<void(std::int64_t)>* task_ = nullptr;
  std::int64_t tasks_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool over_ = false;
};

}  // namespace assay::train
