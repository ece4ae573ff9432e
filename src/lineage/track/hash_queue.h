// HashQueue: hashes files on threads of its own while the run runs, without getting in its way, and
// at the end as fast as the machine can. The owner, one thread, submits tasks and takes results.
//
// While the run runs the threads have idle priority: on a busy machine one of them may be stopped
// for long, at any place. So the owner never waits for the mutex then: what it cannot hand over
// now, it hands over next time.
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
#include "lineage/track/task_list.h"

namespace assay::lineage {

// Digests of earlier runs. Called by the owner only.
class DigestCache {
 public:
  virtual ~DigestCache() = default;
  virtual std::optional<hash::Digest> find(const hash::FileStamp& stamp) = 0;
  virtual void insert(const hash::FileStamp& stamp, const hash::Digest& digest) = 0;
};

class HashQueue {
 public:
  struct Options {
    unsigned threads = 0;  // while the run runs; 0: up to four
    DigestCache* cache = nullptr;
    // Below this a file is hashed sooner than it is found in the cache.
    std::int64_t cache_from = std::int64_t{64} << 10U;
  };

  explicit HashQueue(const Options& options);
  HashQueue(const HashQueue&) = delete;
  HashQueue& operator=(const HashQueue&) = delete;
  ~HashQueue();

  // Threads are started by the first tasks. Tasks with a descriptor go first.
  void submit(HashTask task);
  // Whether take() has something to do. Cheap: one load.
  [[nodiscard]] bool has_results() const {
    return ready_.load(std::memory_order_acquire) > 0 || !outbox_.empty();
  }
  // What is there and can be had without waiting; appended.
  void take(std::vector<HashResult>& results);
  // Waits for at least one result and appends it; false when nothing is left to be done. After
  // raise() the caller works instead of waiting.
  bool wait(std::vector<HashResult>& results);
  // About how many tasks are not done.
  [[nodiscard]] std::size_t pending() const { return queued_ + outbox_.size(); }
  // Descriptors of tasks that are not done.
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }

  // On the caller's thread and all processors, at once. What the queue does about `id` is dropped.
  HashResult hash_now(HashTask task);
  // The run is over: all processors, normal priority from now on.
  void raise();

 private:
  struct Worker;

  [[nodiscard]] std::optional<hash::Digest> known(const HashTask& task);
  void remember(const HashResult& result);
  bool hand_over();
  void start_worker();
  void end_workers();
  void work(Worker& worker);
  // These are called with the mutex held:
  std::vector<HashTask> next_tasks();
  void do_tasks(std::unique_lock<std::mutex>& lock, std::vector<HashTask> tasks, Worker* worker);

  const Options options_;
  const unsigned processors_;
  bool raised_ = false;  // changed by the owner while no thread runs
  // The owner's:
  std::vector<std::unique_ptr<Worker>> workers_;
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
  bool ending_ = false;  // all threads that run now are to end

  std::atomic<std::size_t> ready_ = 0;  // in results_ and found_
  std::atomic<std::size_t> held_ = 0;
};

}  // namespace assay::lineage
