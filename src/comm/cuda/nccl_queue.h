// NcclQueue: an NCCL communicator and the stream on which its calls run, one after the other.
//
// NCCL executes requests on its own thread (communicators are non-blocking), and we wait for a call
// to be launched only when the next one is issued or waited for: so issuing does not wait for other
// ranks, unless they are late to connect. `ready` is recorded on the caller's stream when its
// buffers are ready, `done` after the call.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/cuda/events.h"
#include "comm/cuda/nccl_job.h"
#include "comm/transfers.h"

namespace assay::comm {

// The use of a queue decides how much of the GPU NCCL takes.
enum class NcclUse : std::uint8_t { kCollectives, kOnePair };

class NcclQueue {
 public:
  // Connects all ranks of the job; every rank calls it.
  static base::Result<std::unique_ptr<NcclQueue>> connect(const std::shared_ptr<NcclJob>& job,
                                                          const ncclUniqueId& id);
  // As ncclCommSplit: null for a rank whose color is negative.
  base::Result<std::unique_ptr<NcclQueue>> split(int color, int key, NcclUse use);
  // Finalizes the communicator, or aborts it if that takes too long.
  ~NcclQueue();
  NcclQueue(const NcclQueue&) = delete;
  NcclQueue& operator=(const NcclQueue&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

  // Makes the NCCL calls that implement one of our calls, on the given communicator and stream.
  using Calls = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  // Queues them after what `from` has queued so far; returns the call's number. `what` names it in
  // errors. `own`: what the rank sends to itself.
  base::Result<std::uint64_t> launch(std::string what, cudaStream_t from, const Calls& calls,
                                     const Transfers* own = nullptr);
  // Makes the stream wait for the call.
  base::Result<void> wait(std::uint64_t number, cudaStream_t stream);
  // Blocks until everything launched is done, at most for the connect timeout.
  base::Result<void> drain();

  // For the watching thread: checks the queue, and returns the problem if there is one.
  std::optional<base::Error> poll_failure();
  // Releases the communicator to the caller, who aborts it.
  ncclComm_t take();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  struct InFlightCall {
    std::uint64_t number = 0;
    std::string what;
    cudaEvent_t ready = nullptr;
    cudaEvent_t done = nullptr;
    bool launched = false;  // `done` is recorded
    // Since when it can only be waiting for other ranks.
    std::optional<Clock::time_point> begun = std::nullopt;
    bool overdue = false;  // at the last check it had exceeded the call timeout
  };

  NcclQueue(std::shared_ptr<NcclJob> job, CommunicationStream stream, ncclComm_t comm)
      : job_(std::move(job)), stream_(std::move(stream)), comm_(comm) {}
  static base::Result<std::unique_ptr<NcclQueue>> make(const std::shared_ptr<NcclJob>& job,
                                                       ncclComm_t comm, std::string_view what);

  base::Result<void> finish_last_launch(Lock& lock);
  [[nodiscard]] bool is_being_launched() const;  // the last call
  base::Result<void> record_done();              // after the last call, which is in the stream
  base::Result<void> until_done(Lock& lock, std::string_view what, std::chrono::milliseconds limit);
  base::Result<void> prepare(InFlightCall& flight, cudaStream_t from, const Transfers* own);
  base::Result<void> cuda_failed(const base::Result<void>& done);
  void forget_finished();

  std::shared_ptr<NcclJob> job_;
  CommunicationStream stream_;
  int rank_ = 0;
  int ranks_ = 1;

  std::mutex mutex_;  // NCCL allows one caller of a communicator at a time
  ncclComm_t comm_;   // null after take()
  std::deque<InFlightCall> in_flight_;
  std::uint64_t last_ = 0;
  EventPool events_;
};

}  // namespace assay::comm
