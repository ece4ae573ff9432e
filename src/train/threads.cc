#include "train/threads.h"

#include <sched.h>

#include <algorithm>

namespace assay::train {

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

Threads::Threads(int count) {
  for (int i = 1; i < count; ++i) workers_.emplace_back([this] { work(); });
}

Threads::~Threads() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::take_tasks() {
  for (std::int64_t i = next_.fetch_add(1); i < tasks_; i = next_.fetch_add(1)) (*task_)(i);
}

void Threads::work() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begun_.wait(lock, [&] { return over_ || round_ != seen; });
    if (over_) return;
    seen = round_;
    lock.unlock();
    take_tasks();
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

void Threads::run(std::int64_t tasks, const std::function<void(std::int64_t)>& task) {
  if (workers_.empty() || tasks <= 1) {
    for (std::int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    tasks_ = tasks;
    next_ = 0;
    busy_ = static_cast<int>(workers_.size());
    ++round_;
  }
  begun_.notify_all();
  take_tasks();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

void Threads::ranges(std::int64_t items, std::int64_t size,
                     const std::function<void(std::int64_t, std::int64_t)>& task) {
  run((items + size - 1) / size,
      [&](std::int64_t i) { task(i * size, std::min(items, (i + 1) * size)); });
}

}  // namespace assay::train
