// Threads: a fixed set of threads that share out numbered tasks. Which thread does a task never
// changes what the task computes, so results do not depend on how many threads there are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::train {

// That this process may run on.
int usable_processors();

class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  [[nodiscard]] int count() const { return static_cast<int>(workers_.size()) + 1; }
  // task(0) … task(tasks - 1), in any order, also by the caller; returns when all are done.
  void run(std::int64_t tasks, const std::function<void(std::int64_t)>& task);
  // The same for ranges of `items`, `size` at a time: task(first, last).
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
