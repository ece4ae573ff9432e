// HashQueue: hashes files in background threads: while the command runs, without slowing it down;
// afterwards, as fast as possible. One thread, the owner, submits tasks and takes results.
//
// While the command runs the threads have idle priority, so on a busy machine one may be
// descheduled for long even while it holds the mutex. So the owner only uses try_lock meanwhile;
// tasks that it cannot hand over stay in its outbox until the next call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "hash/digest.h"
#include "hash/file.h"
#include "lineage/track/hash_task.h"

namespace assay::lineage {

// Digests from earlier runs. Called by the owner only.
class DigestCache {
 public:
  virtual ~DigestCache() = default;
  virtual std::optional<hash::Digest> find(const hash::FileStamp& stamp) = 0;
  virtual void insert(const hash::FileStamp& stamp, const hash::Digest& digest) = 0;
};

class HashQueue {
 public:
  struct Options {
    unsigned threads = 0;  // while the command runs; 0: up to four
    DigestCache* cache = nullptr;
    std::int64_t cache_from = 1;  // smaller files are not looked up in the cache
  };

  explicit HashQueue(const Options& options);
  HashQueue(const HashQueue&) = delete;
  HashQueue& operator=(const HashQueue&) = delete;
  ~HashQueue();

  // The first tasks start the threads. Tasks with a descriptor go first.
  void submit(HashTask task);
  // Whether take() has something to do. Cheap: one load.
  [[nodiscard]] bool has_results() const {
    return ready_.load(std::memory_order_acquire) > 0 || !outbox_.empty();
  }
  // Appends the results that are available without waiting.
  void take(std::vector<HashResult>& results);
  // Waits for at least one result and appends it; false: nothing is left to do. After raise() the
  // caller hashes files instead of waiting.
  bool wait(std::vector<HashResult>& results);
  // The approximate number of unfinished tasks.
  [[nodiscard]] std::size_t pending() const { return queued_ + outbox_.size(); }
  // The number of descriptors of unfinished tasks.
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }

  // Hashes immediately, with the caller's thread and all processors. The queue's own task for `id`
  // is dropped.
  HashResult hash_now(HashTask task);
  // The command has ended: all processors and normal priority from now on.
  void raise();

 private:
  struct Worker;

  [[nodiscard]] std::optional<hash::Digest> known(const HashTask& task);
  void remember(const HashResult& result);
  bool hand_over();
  void start_worker();
  void end_workers();
  void work(Worker& worker);
  // Called with the mutex held:
  std::vector<HashTask> next_tasks();
  void do_tasks(std::unique_lock<std::mutex>& lock, std::vector<HashTask> tasks, Worker* worker);

  const Options options_;
  const unsigned processors_;
  bool raised_ = false;  // changed by the owner while no thread runs
  // Used only by the owner:
  std::vector<std::unique_ptr<Worker>> workers_;
  TaskBatch batch_;                // of its own tasks
  std::vector<HashTask> outbox_;   // not yet in tasks_
  std::vector<HashResult> found_;  // in the cache
  std::size_t queued_ = 0;         // in tasks_ and running, when last seen

  std::mutex mutex_;  // guards what follows
  std::condition_variable work_;
  std::condition_variable done_;
  TaskList tasks_;
  std::vector<HashResult> results_;
  std::size_t running_ = 0;  // tasks that are neither in tasks_ nor in results_
  std::size_t sleeping_ = 0;
  bool ending_ = false;  // the current threads are to end

  std::atomic<std::size_t> ready_ = 0;  // in results_ and found_
  std::atomic<std::size_t> held_ = 0;
};

}  // namespace assay::lineage
