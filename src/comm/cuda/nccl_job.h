// NcclJob: what all communicators of a rank over NCCL share: the library, the limits, the first
// failure, and a thread that looks after them. NCCL itself neither bounds a wait nor says which
// call hangs, and aborting a communicator can take long, so no caller does it: it sets the failure,
// which everybody sees at once, and the thread aborts all communicators at the same time. One after
// the other could hang: freeing the memory of one waits for the kernels of all.
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
  // "rank 3: ": who it is, in errors.
  [[nodiscard]] base::Error error(std::string what, std::string hint = {}) const;

  // The first one, of this rank or, if the options tell, of another.
  [[nodiscard]] std::optional<base::Error> failure() const;
  // Never waits. Returns the failure that holds: the first one.
  base::Error fail(const base::Error& why);
  // After a failure: until NCCL uses no memory of the caller's any more, which it does also on
  // threads of its own. Bounded.
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

  mutable std::mutex mutex_;  // guards what follows; taken last
  std::condition_variable changed_;
  mutable std::optional<base::Error> failure_;
  bool aborted_ = false;  // all that there was when it failed
  bool ends_ = false;
  std::thread thread_;
};

// Runs functions that may hang, each on a thread of its own, for at most this long. A thread that
// has not come back then is left alone: a function of NCCL cannot be interrupted.
void run_bounded(std::vector<std::function<void()>> functions, std::chrono::milliseconds limit);

}  // namespace assay::comm
