#include "lineage/track/hash_queue.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "hash/segments.h"
#include "lineage/track/signals_blocked.h"

namespace assay::lineage {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 20U;  // has parts for several threads
constexpr std::size_t kBatch = 32;                       // small files taken from the queue at once

constexpr int kWhoProcess = 1;  // of ioprio_set, which has no header

// Runs only if nothing else needs the processor or the disk.
void lower_priority() {
  constexpr int kIdleClass = 3 << 13;
  sched_param parameter{};
  ::sched_setscheduler(0, SCHED_IDLE, &parameter);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
  ::syscall(SYS_ioprio_set, kWhoProcess, 0, kIdleClass);
}

// Raises the thread's I/O priority, so that it ends soon. Normal CPU priority would need
// privileges, which is why raise() starts new threads.
void raise_priority(pid_t thread) {
  constexpr int kBestEffort = (2 << 13) | 4;
  sched_param parameter{};
  ::sched_setscheduler(thread, SCHED_OTHER, &parameter);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), 0);
  ::syscall(SYS_ioprio_set, kWhoProcess, thread, kBestEffort);
}

HashResult found(const HashTask& task, const hash::Digest& digest) {
  HashResult result;
  result.id = task.id;
  result.state = HashResult::State::kDone;
  result.digest = digest;
  result.stamp = task.expected;
  return result;
}

}  // namespace

// A thread and its current task.
struct HashQueue::Worker {
  std::thread thread;
  TaskBatch batch;
  // Guarded by the queue's mutex:
  pid_t thread_id = 0;
  std::uint32_t id = 0;  // of the current task
  std::stop_source stop;
};

HashQueue::HashQueue(const Options& options)
    : options_(options), processors_(std::max(1U, hash::usable_threads())) {}

HashQueue::~HashQueue() {
  end_workers();
}

std::optional<hash::Digest> HashQueue::known(const HashTask& task) {
  if (options_.cache == nullptr || task.expected.size < options_.cache_from) return std::nullopt;
  return options_.cache->find(task.expected);
}

void HashQueue::remember(const HashResult& result) {
  if (options_.cache == nullptr || !result.cacheable) return;
  if (result.stamp.size >= options_.cache_from) options_.cache->insert(result.stamp, result.digest);
}

void HashQueue::submit(HashTask task) {
  if (const auto digest = known(task)) {
    found_.push_back(found(task, *digest));
    ready_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (task.fd.valid()) held_.fetch_add(1, std::memory_order_relaxed);
  outbox_.push_back(std::move(task));
  hand_over();
}

// Returns whether the mutex was free.
bool HashQueue::hand_over() {
  std::size_t sleeping = 0;
  std::size_t tasks = 0;
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock && !raised_) return false;
    if (!lock) lock.lock();
    for (HashTask& task : outbox_) {
      task.fd.valid() ? tasks_.push_front(std::move(task)) : tasks_.push_back(std::move(task));
    }
    tasks_.free_spent();
    sleeping = sleeping_;
    tasks = tasks_.size();
    queued_ = tasks + running_;
  }
  outbox_.clear();
  if (tasks == 0) return true;
  if (sleeping > 0) {
    work_.notify_one();
  } else if (!raised_ || tasks > kBatch) {
    start_worker();
  }
  return true;
}

// After raise() the owner works too, and a few files do not justify a thread.
void HashQueue::start_worker() {
  const unsigned wanted = raised_                 ? processors_ - 1
                          : options_.threads != 0 ? options_.threads
                                                  : std::min(processors_, 4U);
  if (workers_.size() >= wanted) return;
  const SignalsBlocked blocked;
  try {
    auto worker = std::make_unique<Worker>();
    worker->thread = std::thread([this, worker = worker.get()] {
      if (!raised_) lower_priority();
      work(*worker);
    });
    workers_.push_back(std::move(worker));
  } catch (const std::system_error&) {
    // No more threads available: the existing ones do the work, or the owner in wait().
  }
}

void HashQueue::take(std::vector<HashResult>& results) {
  if (!outbox_.empty()) hand_over();
  ready_.fetch_sub(found_.size(), std::memory_order_relaxed);
  std::ranges::move(found_, std::back_inserter(results));
  found_.clear();
  const std::size_t from = results.size();
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock && !raised_) return;
    if (!lock) lock.lock();
    ready_.fetch_sub(results_.size(), std::memory_order_relaxed);
    std::ranges::move(results_, std::back_inserter(results));
    results_.clear();
    queued_ = tasks_.size() + running_;
  }
  for (std::size_t i = from; i < results.size(); ++i) remember(results[i]);
}

bool HashQueue::wait(std::vector<HashResult>& results) {
  while (!outbox_.empty() && !hand_over()) std::this_thread::yield();
  const std::size_t had = results.size();
  while (results.size() == had) {
    if (found_.empty()) {
      std::unique_lock lock(mutex_);
      while (results_.empty()) {
        if (!tasks_.empty() && (raised_ || workers_.empty())) {
          do_tasks(lock, next_tasks(), nullptr);
        } else if (tasks_.empty() && running_ == 0) {
          return false;
        } else {
          done_.wait(lock);
        }
      }
    }
    take(results);
  }
  return true;
}

HashResult HashQueue::hash_now(HashTask task) {
  if (const auto digest = known(task)) return found(task, *digest);
  {
    // A worker hashing the same file would only compete.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    for (const auto& worker : workers_) {
      if (lock && worker->id == task.id) worker->stop.request_stop();
    }
  }
  const unsigned threads = task.expected.size < kLarge ? 1 : processors_;
  HashResult result = hash_task(task, {.threads = threads});
  remember(result);
  return result;
}

void HashQueue::raise() {
  if (raised_) return;
  end_workers();
  raised_ = true;
  std::size_t tasks = 0;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = false;
    tasks = tasks_.size() + outbox_.size();
  }
  hand_over();
  for (std::size_t i = kBatch; i < tasks && i < kBatch + processors_; ++i) start_worker();
}

// Unfinished tasks go back to the queue.
void HashQueue::end_workers() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    for (const auto& worker : workers_) {
      worker->stop.request_stop();
      if (worker->thread_id != 0) raise_priority(worker->thread_id);
    }
  }
  work_.notify_all();
  for (const auto& worker : workers_) worker->thread.join();
  workers_.clear();
}

// The tasks that a thread takes at a time: one large file, or several small ones, leaving some for
// other threads.
std::vector<HashTask> HashQueue::next_tasks() {
  std::vector<HashTask> taken;
  const std::size_t most =
      std::clamp<std::size_t>(tasks_.size() / (2 * std::size_t{processors_}), 1, kBatch);
  while (!tasks_.empty() && taken.size() < most) {
    const bool large = tasks_.front().expected.size >= kLarge;
    if (large && !taken.empty()) break;
    taken.push_back(tasks_.pop_front());
    if (large) break;
  }
  return taken;
}

void HashQueue::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  worker.thread_id = ::gettid();
  while (!ending_) {
    if (tasks_.empty()) {
      ++sleeping_;
      work_.wait(lock);
      --sleeping_;
    } else {
      do_tasks(lock, next_tasks(), &worker);
    }
  }
}

void HashQueue::do_tasks(std::unique_lock<std::mutex>& lock, std::vector<HashTask> tasks,
                         Worker* worker) {
  running_ += tasks.size();
  TaskBatch& batch = worker != nullptr ? worker->batch : batch_;
  for (HashTask& task : tasks) {
    std::stop_token stop;
    if (worker != nullptr) {
      worker->id = task.id;
      worker->stop = std::stop_source();
      stop = worker->stop.get_token();
      if (ending_) worker->stop.request_stop();
    }
    // Large files share the processors; while the command runs, one each is enough.
    const auto rivals = static_cast<unsigned>(
        std::min<std::size_t>(tasks_.size() + running_, std::size_t{processors_}));
    const unsigned threads =
        raised_ && task.expected.size >= kLarge ? std::max(1U, processors_ / rivals) : 1;
    bool stopped = stop.stop_requested();
    if (!stopped) {
      lock.unlock();
      // Page faults of a mapping hold the address-space lock and would stall the owner's thread.
      const auto reading = raised_ ? hash::ReadMethod::kMapped : hash::ReadMethod::kCopied;
      const HashResult& result =
          batch.add(task, {.threads = threads, .stop = stop, .reading = reading});
      lock.lock();
      stopped = stop.stop_requested() && result.state != HashResult::State::kDone;
      if (stopped) batch.drop_last();
    }
    if (worker != nullptr) worker->id = 0;
    if (stopped) {
      --running_;
      if (ending_) {
        tasks_.push_front(std::move(task));
        continue;
      }
      // Otherwise hash_now() stopped it and returns the result itself.
    }
    if (task.fd.valid()) held_.fetch_sub(1, std::memory_order_relaxed);
  }
  lock.unlock();
  std::vector<HashResult> results = batch.take();
  lock.lock();
  running_ -= results.size();
  ready_.fetch_add(results.size(), std::memory_order_release);
  std::ranges::move(results, std::back_inserter(results_));
  done_.notify_all();
}

}  // namespace assay::lineage
