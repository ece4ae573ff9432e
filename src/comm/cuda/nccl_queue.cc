#include "comm/cuda/nccl_queue.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace assay::comm {
namespace {

using std::chrono::milliseconds;

// How long finalizing a communicator may take before it is aborted, and how long aborting may take.
constexpr milliseconds kEndLimit{5'000};

// Few channels are enough for the activations of a micro-batch, and leave the GPU to computation.
constexpr int kPairBlocks = 8;

ncclConfig_t config_for(NcclUse use) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (use == NcclUse::kOnePair) config.maxCTAs = kPairBlocks;
  return config;
}

bool good(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// Starting a call takes tens of microseconds, connecting ranks takes seconds.
void pause_after(int polls) {
  if (polls < 100) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(polls < 2'000 ? 50 : 2'000));
  }
}

// Runs on its own thread, because each of these NCCL functions may wait for other ranks. Returns
// whether the end was orderly.
bool end(const NcclLibrary& nccl, int device, ncclComm_t comm, bool failed) {
  cudaSetDevice(device);
  const auto limit = std::chrono::steady_clock::now() + kEndLimit;
  ncclResult_t state = failed ? ncclInternalError : nccl.finalize(comm);
  for (int polls = 0; state == ncclInProgress && std::chrono::steady_clock::now() < limit;
       ++polls) {
    pause_after(polls);
    if (nccl.async_error(comm, &state) != ncclSuccess) break;
  }
  if (state != ncclSuccess) {
    nccl.abort(comm);
    return false;
  }
  nccl.destroy(comm);
  return true;
}

// The address to which NCCL writes a new communicator. After a timeout it is unknown when NCCL will
// write, so these variables are never freed.
ncclComm_t& place_for_split() {
  static std::mutex mutex;
  static auto& places = *new std::deque<ncclComm_t>;
  const std::lock_guard lock(mutex);
  return places.emplace_back(nullptr);
}

}  // namespace

base::Result<std::unique_ptr<NcclQueue>> NcclQueue::make(const std::shared_ptr<NcclJob>& job,
                                                         ncclComm_t comm, std::string_view what) {
  cudaSetDevice(job->options().device);
  auto stream = CommunicationStream::make();
  if (!stream) {
    job->fail(stream.error());
    run_bounded({[nccl = &job->nccl(), comm] { nccl->abort(comm); }}, kEndLimit);
    return base::fail(stream.error());
  }
  std::unique_ptr<NcclQueue> queue(new NcclQueue(job, *std::move(stream), comm));
  job->add(queue.get());
  Lock lock(queue->mutex_);
  ASSAY_TRY_VOID(queue->until_done(lock, what, job->options().connect_timeout));
  const NcclLibrary& nccl = job->nccl();
  for (const ncclResult_t result :
       {nccl.count(comm, &queue->ranks_), nccl.user_rank(comm, &queue->rank_)}) {
    if (result != ncclSuccess) return base::fail(job->fail(job->error(nccl.why(result))));
  }
  return queue;
}

base::Result<std::unique_ptr<NcclQueue>> NcclQueue::connect(const std::shared_ptr<NcclJob>& job,
                                                            const ncclUniqueId& id) {
  const NcclOptions& options = job->options();
  const std::string what = fmt::format("connecting {} ranks with NCCL", options.ranks);
  ncclConfig_t config = config_for(NcclUse::kCollectives);
  ncclComm_t comm = nullptr;
  const ncclResult_t begun = job->nccl().init_rank(&comm, options.ranks, id, options.rank, &config);
  if (!good(begun) || comm == nullptr) {
    return base::fail(
        job->fail(job->error(fmt::format("{}: {}", what, job->nccl().why(begun)),
                             "NCCL_DEBUG=INFO in the environment enables NCCL's log")));
  }
  return make(job, comm, what);
}

base::Result<std::unique_ptr<NcclQueue>> NcclQueue::split(int color, int key, NcclUse use) {
  Lock lock(mutex_);
  ASSAY_TRY_VOID(finish_last_launch(lock));
  const NcclLibrary& nccl = job_->nccl();
  ncclConfig_t config = config_for(use);
  ncclComm_t& made = place_for_split();
  const std::string what = "making a group of ranks with NCCL";
  const ncclResult_t begun =
      nccl.split(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &made, &config);
  if (!good(begun)) {
    return base::fail(job_->fail(job_->error(fmt::format("{}: {}", what, nccl.why(begun)))));
  }
  ASSAY_TRY_VOID(until_done(lock, what, job_->options().connect_timeout));
  lock.unlock();
  if (color < 0) return nullptr;
  if (made == nullptr) return base::fail(job_->fail(job_->error(what + ": got none")));
  return make(job_, made, what);
}

NcclQueue::~NcclQueue() {
  job_->remove(this);
  if (const ncclComm_t comm = take()) {
    // After a failure, or after one that hung, the others are aborted without trying to finalize
    // them.
    const bool failed = job_->failure().has_value();
    const auto ended = std::make_shared<std::atomic<bool>>(false);
    run_bounded({[nccl = &job_->nccl(), device = job_->options().device, comm, failed, ended] {
                  *ended = end(*nccl, device, comm, failed);
                }},
                2 * kEndLimit);
    if (!failed && !*ended) job_->fail(job_->error("a group of ranks did not end in time"));
  }
  for (const InFlightCall& flight : in_flight_) {
    events_.give_back(flight.ready);
    events_.give_back(flight.done);
  }
}

// Waits until NCCL has completed its last request. Releases the lock between polls.
base::Result<void> NcclQueue::until_done(Lock& lock, std::string_view what, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (int polls = 0;; ++polls) {
    if (auto failure = job_->failure()) return base::fail(*std::move(failure));
    ncclResult_t state = ncclInProgress;
    const ncclResult_t query_result = job_->nccl().async_error(comm_, &state);
    if (query_result != ncclSuccess) state = query_result;
    if (state == ncclSuccess) return {};
    if (state != ncclInProgress) {
      return base::fail(
          job_->fail(job_->error(fmt::format("{}: {}", what, job_->nccl().why(state)))));
    }
    if (Clock::now() > deadline) {
      return base::fail(job_->fail(
          job_->error(fmt::format("{} has not finished within {} ms", what, limit.count()),
                      "a rank is missing or hangs; NCCL_DEBUG=INFO enables NCCL's log")));
    }
    lock.unlock();
    pause_after(polls);
    lock.lock();
  }
}

// Waits until the last call has been enqueued on the stream.
base::Result<void> NcclQueue::finish_last_launch(Lock& lock) {
  if (auto failure = job_->failure()) return base::fail(*std::move(failure));
  if (!is_being_launched()) return {};
  const std::string what = in_flight_.back().what;
  ASSAY_TRY_VOID(until_done(lock, what, job_->options().call_timeout));
  // The watching thread may have noticed it meanwhile, and also that the call has finished.
  return is_being_launched() ? cuda_failed(record_done()) : base::Result<void>();
}

bool NcclQueue::is_being_launched() const {
  return !in_flight_.empty() && !in_flight_.back().launched;
}

base::Result<void> NcclQueue::record_done() {
  InFlightCall& flight = in_flight_.back();
  ASSAY_TRY_VOID(cuda_done(cudaEventRecord(flight.done, stream_.get()), "recording an event"));
  flight.launched = true;
  return {};
}

base::Result<void> NcclQueue::cuda_failed(const base::Result<void>& done) {
  if (done) return {};
  return base::fail(job_->fail(done.error()));
}

void NcclQueue::forget_finished() {
  while (!in_flight_.empty() && in_flight_.front().launched &&
         event_state(in_flight_.front().done) == cudaSuccess) {
    events_.give_back(in_flight_.front().ready);
    events_.give_back(in_flight_.front().done);
    in_flight_.pop_front();
  }
}

base::Result<void> NcclQueue::prepare(InFlightCall& flight, cudaStream_t from,
                                      const Transfers* own) {
  ASSAY_TRY_VOID(cuda_done(cudaSetDevice(job_->options().device), "choosing the GPU"));
  ASSAY_TRY(flight.ready, events_.take());
  ASSAY_TRY(flight.done, events_.take());
  ASSAY_TRY_VOID(cuda_done(cudaEventRecord(flight.ready, from), "recording an event"));
  ASSAY_TRY_VOID(cuda_done(cudaStreamWaitEvent(stream_.get(), flight.ready), "waiting"));
  if (own == nullptr || own->own_to.bytes == 0 || own->own_to.data == own->own_from.data) return {};
  return cuda_done(cudaMemcpyAsync(own->own_to.data, own->own_from.data, own->own_to.bytes,
                                   cudaMemcpyDeviceToDevice, stream_.get()),
                   "copying a rank's own part");
}

base::Result<std::uint64_t> NcclQueue::launch(std::string what, cudaStream_t from,
                                              const Calls& calls, const Transfers* own) {
  Lock lock(mutex_);
  ASSAY_TRY_VOID(finish_last_launch(lock));
  forget_finished();
  in_flight_.push_back({.number = ++last_, .what = std::move(what)});
  InFlightCall& flight = in_flight_.back();
  ASSAY_TRY_VOID(cuda_failed(prepare(flight, from, own)));
  const NcclLibrary& nccl = job_->nccl();
  ncclResult_t result = nccl.group_start();
  if (good(result)) {
    result = calls(comm_, stream_.get());
    const ncclResult_t ended = nccl.group_end();
    if (good(result)) result = ended;
  }
  if (!good(result)) {
    return base::fail(
        job_->fail(job_->error(fmt::format("{}: {}", flight.what, nccl.why(result)))));
  }
  return flight.number;
}

base::Result<void> NcclQueue::wait(std::uint64_t number, cudaStream_t stream) {
  Lock lock(mutex_);
  if (!in_flight_.empty() && in_flight_.back().number == number)
    ASSAY_TRY_VOID(finish_last_launch(lock));
  if (auto failure = job_->failure()) return base::fail(*std::move(failure));
  const auto flight = std::ranges::find(in_flight_, number, &InFlightCall::number);
  if (flight == in_flight_.end()) return {};  // it has finished
  ASSAY_TRY_VOID(cuda_failed(cuda_done(cudaSetDevice(job_->options().device), "choosing the GPU")));
  return cuda_failed(cuda_done(cudaStreamWaitEvent(stream, flight->done), "waiting"));
}

base::Result<void> NcclQueue::drain() {
  Lock lock(mutex_);
  ASSAY_TRY_VOID(finish_last_launch(lock));
  const auto deadline = Clock::now() + job_->options().connect_timeout;
  for (int polls = 0;; ++polls) {
    if (auto failure = job_->failure()) return base::fail(*std::move(failure));
    forget_finished();
    if (in_flight_.empty()) return {};
    if (Clock::now() > deadline) {
      return base::fail(job_->fail(
          job_->error(fmt::format("{} has not finished within {} ms", in_flight_.front().what,
                                  job_->options().connect_timeout.count()))));
    }
    lock.unlock();
    pause_after(polls);
    lock.lock();
  }
}

std::optional<base::Error> NcclQueue::poll_failure() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t query_result = job_->nccl().async_error(comm_, &state);
  if (query_result != ncclSuccess) state = query_result;
  // The caller may take a long time before it waits for its last call, so this thread records its
  // end.
  if (state == ncclSuccess && is_being_launched()) {
    if (const auto recorded = record_done(); !recorded) return recorded.error();
  }
  forget_finished();
  if (!good(state)) {
    const std::string what = in_flight_.empty() ? "NCCL" : in_flight_.front().what;
    return job_->error(fmt::format("{}: {}", what, job_->nccl().why(state)));
  }
  if (in_flight_.empty()) return std::nullopt;
  InFlightCall& first = in_flight_.front();
  const cudaError_t ready = event_state(first.ready);
  if (ready == cudaErrorNotReady) return std::nullopt;  // the GPU still computes
  if (ready != cudaSuccess) return job_->error(fmt::format("GPU: {}", cudaGetErrorString(ready)));
  if (!first.begun) first.begun = Clock::now();
  const milliseconds limit = job_->options().call_timeout;
  if (Clock::now() - *first.begun <= limit) return std::nullopt;
  // Time may have passed while this process was stopped, and events recorded a moment ago are not
  // visible yet: a call that has finished will be gone at the next check.
  if (!std::exchange(first.overdue, true)) return std::nullopt;
  return job_->error(fmt::format("{} has not finished within {} ms", first.what, limit.count()),
                     "another rank hangs or has ended");
}

ncclComm_t NcclQueue::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(comm_, nullptr);
}

}  // namespace assay::comm
