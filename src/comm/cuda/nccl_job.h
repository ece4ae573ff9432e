// NcclJob: what all NCCL communicators of a rank share: the library, the timeouts, the first
// failure, and a thread that watches them. NCCL itself neither bounds waits nor says which call
// hangs, and aborting a communicator can take long. So callers do not abort; they set the failure,
// which all threads see at once, and the watching thread aborts all communicators concurrently.
// Aborting them one after the other could hang: freeing the memory of one waits for the kernels of
// all.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/cuda/nccl.h"
#include "comm/cuda/nccl_library.h"

namespace assay::comm {

class NcclQueue;

class NcclJob {
 public:
  NcclJob(const NcclLibrary& nccl, NcclOptions options);
  ~NcclJob();
  NcclJob(const NcclJob&) = delete;
  NcclJob& operator=(const NcclJob&) = delete;

  [[nodiscard]] const NcclLibrary& nccl() const { return *nccl_; }
  [[nodiscard]] const NcclOptions& options() const { return options_; }
  // An error prefixed with this rank ("rank 3: ").
  [[nodiscard]] base::Error error(std::string what, std::string hint = {}) const;

  // The first failure, of this rank or, if options().failed reports one, of another.
  [[nodiscard]] std::optional<base::Error> failure() const;
  // Never waits. Returns the failure in effect, which is the first one.
  base::Error fail(const base::Error& why);
  // After a failure: waits until NCCL no longer uses the caller's memory, which it also does on its
  // own threads. Bounded.
  void wait_for_aborts();

  void add(NcclQueue* queue);
  void remove(NcclQueue* queue);

 private:
  void watch();
  void abort_all();

  const NcclLibrary* nccl_;
  const NcclOptions options_;

  std::mutex queues_mutex_;  // taken before a queue's own
  std::vector<NcclQueue*> queues_;

  mutable std::mutex mutex_;  // guards what follows; locked last
  std::condition_variable changed_;
  mutable std::optional<base::Error> failure_;
  bool aborted_ = false;  // all communicators that existed at the failure
  bool ends_ = false;
  std::thread thread_;
};

// Runs functions that may hang, each on its own thread, for at most this long. A thread that has
// not returned by then is abandoned: NCCL's functions cannot be interrupted.
void run_bounded(std::vector<std::function<void()>> functions, std::chrono::milliseconds limit);

}  // namespace assay::comm
