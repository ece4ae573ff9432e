// NcclQueue: one communicator of NCCL and the stream that its calls run on, one after the other.
//
// NCCL does what it is asked for on a thread of its own (communicators are made not to block), and
// a call waits for the one before only when the next is issued or waited for: so issuing does not
// wait for other ranks, unless they are late to connect. `ready` is recorded where the caller's
// stream has the buffers ready, `done` behind the call.
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

// What a queue is made for decides how much of the GPU NCCL takes.
enum class NcclUse : std::uint8_t { kCollectives, kOnePair };

class NcclQueue {
 public:
  // The ranks of the job, connected; every rank calls it.
  static base::Result<std::unique_ptr<NcclQueue>> connect(const std::shared_ptr<NcclJob>& job,
                                                          const ncclUniqueId& id);
  // As ncclCommSplit: null for a rank whose color is negative.
  base::Result<std::unique_ptr<NcclQueue>> split(int color, int key, NcclUse use);
  // Ends the communicator, or aborts it if that takes too long.
  ~NcclQueue();
  NcclQueue(const NcclQueue&) = delete;
  NcclQueue& operator=(const NcclQueue&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

  // Makes NCCL's calls of one call of ours, on the communicator and stream that it is given.
  using Calls = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  // Queues them behind what `from` has queued so far; returns the call's number. `what` is its name
  // in errors. `own`: what the rank sends to itself.
  base::Result<std::uint64_t> launch(std::string what, cudaStream_t from, const Calls& calls,
                                     const Transfers* own = nullptr);
  // Makes the stream wait for the call.
  base::Result<void> wait(std::uint64_t number, cudaStream_t stream);
  // Makes the caller wait for everything that was launched, at most as long as connecting may take.
  base::Result<void> drain();

  // For the thread that looks after queues: what is wrong, if something is.
  std::optional<base::Error> look();
  // Takes the communicator away, to abort it.
  ncclComm_t take();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  struct Flight {
    std::uint64_t number = 0;
    std::string what;
    cudaEvent_t ready = nullptr;
    cudaEvent_t done = nullptr;
    bool launched = false;  // `done` is recorded
    // Since when nothing but other ranks can be what it waits for.
    std::optional<Clock::time_point> begun = std::nullopt;
    bool overdue = false;  // for longer than a call may take, when it was looked at last
  };

  NcclQueue(std::shared_ptr<NcclJob> job, MovingStream stream, ncclComm_t comm)
      : job_(std::move(job)), stream_(std::move(stream)), comm_(comm) {}
  static base::Result<std::unique_ptr<NcclQueue>> make(const std::shared_ptr<NcclJob>& job,
                                                       ncclComm_t comm, std::string_view what);

  base::Result<void> settle(Lock& lock);
  [[nodiscard]] bool is_being_launched() const;  // the last call
  base::Result<void> record_done();              // behind the last call, which is in the stream
  base::Result<void> until_done(Lock& lock, std::string_view what, std::chrono::milliseconds limit);
  base::Result<void> prepare(Flight& flight, cudaStream_t from, const Transfers* own);
  base::Result<void> cuda_failed(const base::Result<void>& done);
  void forget_finished();

  std::shared_ptr<NcclJob> job_;
  MovingStream stream_;
  int rank_ = 0;
  int ranks_ = 1;

  std::mutex mutex_;  // NCCL allows one caller of a communicator at a time
  ncclComm_t comm_;   // null when it was taken away
  std::deque<Flight> flights_;
  std::uint64_t last_ = 0;
  Events events_;
};

}  // namespace assay::comm
