#include "comm/cuda/nccl_job.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "comm/cuda/nccl_queue.h"

namespace assay::comm {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::milliseconds kAbortLimit{20'000};

}  // namespace

void run_bounded(std::vector<std::function<void()>> functions, std::chrono::milliseconds limit) {
  struct Running {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t left = 0;
  };
  const auto running = std::make_shared<Running>();
  running->left = functions.size();
  for (std::function<void()>& function : functions) {
    std::thread([running, function = std::move(function)]() mutable {
      function();
      function = nullptr;  // and what it holds
      const std::lock_guard lock(running->mutex);
      --running->left;
      running->changed.notify_all();
    }).detach();
  }
  std::unique_lock lock(running->mutex);
  running->changed.wait_for(lock, limit, [&] { return running->left == 0; });
}

NcclJob::NcclJob(const NcclLibrary& nccl, NcclOptions options)
    : nccl_(&nccl), options_(std::move(options)), thread_([this] { watch(); }) {}

NcclJob::~NcclJob() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

base::Error NcclJob::error(std::string what, std::string hint) const {
  return base::failed_error(fmt::format("rank {}", options_.rank), std::move(what),
                            std::move(hint));
}

std::optional<base::Error> NcclJob::failure() const {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ || !options_.failed) return failure_;
  }
  auto reported = options_.failed();
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(reported);
  return failure_;
}

base::Error NcclJob::fail(const base::Error& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = why;
  changed_.notify_all();
  return *failure_;
}

void NcclJob::wait_for_aborts() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 2 * kAbortLimit, [&] { return aborted_ || ends_; });
}

void NcclJob::add(NcclQueue* queue) {
  const std::lock_guard lock(queues_mutex_);
  queues_.push_back(queue);
}

void NcclJob::remove(NcclQueue* queue) {
  const std::lock_guard lock(queues_mutex_);
  std::erase(queues_, queue);
}

void NcclJob::watch() {
  cudaSetDevice(options_.device);
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    const bool failed = failure().has_value();
    if (failed) {
      abort_all();
    } else {
      const std::lock_guard queues(queues_mutex_);
      for (NcclQueue* queue : queues_) {
        if (const auto wrong = queue->poll_failure()) fail(*wrong);
      }
    }
    lock.lock();
    if (failed) {
      aborted_ = true;
      changed_.notify_all();
    }
    const auto due = [&] { return ends_ || (failure_ && !aborted_); };
    changed_.wait_for(lock, kLookEvery, due);
  }
}

void NcclJob::abort_all() {
  std::vector<std::function<void()>> aborts;
  {
    const std::lock_guard queues(queues_mutex_);
    for (NcclQueue* queue : queues_) {
      if (const ncclComm_t comm = queue->take()) {
        aborts.emplace_back([nccl = nccl_, device = options_.device, comm] {
          cudaSetDevice(device);
          nccl->abort(comm);
        });
      }
    }
  }
  if (!aborts.empty()) run_bounded(std::move(aborts), kAbortLimit);
}

}  // namespace assay::comm
