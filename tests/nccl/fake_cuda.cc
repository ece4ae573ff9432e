#include "nccl/fake_cuda.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "comm/cuda/copy_kernel.h"

namespace assay::fakecuda {

class Flag {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return set_; });
  }
  bool is_set() {
    const std::lock_guard lock(mutex_);
    return set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

namespace {

thread_local int chosen_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::atomic<int> events = 0;
std::atomic<int> allocations = 0;
std::atomic<int> kernel_copies = 0;

}  // namespace
}  // namespace assay::fakecuda

using assay::fakecuda::Flag;

struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<Flag> recorded;  // the newest; none: never recorded
};

struct CUstream_st {
  int device = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool busy = false;
  bool ends = false;
  std::thread thread;
};

namespace assay::fakecuda {
namespace {

std::mutex streams_mutex;
std::set<CUstream_st*> streams;

void work_off(CUstream_st* stream) {
  std::unique_lock lock(stream->mutex);
  while (true) {
    stream->changed.wait(lock, [&] { return stream->ends || !stream->queue.empty(); });
    if (stream->queue.empty()) return;
    const auto work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->busy = true;
    lock.unlock();
    work();
    lock.lock();
    stream->busy = false;
    stream->changed.notify_all();
  }
}

void wait_for(CUstream_st* stream) {
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->queue.empty() && !stream->busy; });
}

}  // namespace

// Nothing is ever queued to the default stream, so its work is done at once.
void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  const std::lock_guard lock(stream->mutex);
  stream->queue.push_back(std::move(work));
  stream->changed.notify_all();
}

int current_device() {
  return chosen_device;
}

void wait_for_device(int device) {
  const std::lock_guard lock(streams_mutex);
  for (CUstream_st* stream : streams) {
    if (stream->device == device) wait_for(stream);
  }
}

int copies_by_kernel() {
  return kernel_copies;
}

int streams_left() {
  const std::lock_guard lock(streams_mutex);
  return static_cast<int>(streams.size());
}
int events_left() {
  return events;
}
int allocations_left() {
  return allocations;
}

}  // namespace assay::fakecuda

using namespace assay::fakecuda;  // NOLINT

extern "C" {

cudaError_t cudaSetDevice(int device) {
  chosen_device = device;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error of CUDA";
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st;
  (*stream)->device = chosen_device;
  (*stream)->thread = std::thread(work_off, *stream);
  const std::lock_guard lock(streams_mutex);
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
// As the real one: what is queued is still done, and the caller does not wait for it.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(streams_mutex);
    streams.erase(stream);
  }
  {
    const std::lock_guard lock(stream->mutex);
    stream->ends = true;
    stream->changed.notify_all();
  }
  std::thread([stream] {
    stream->thread.join();
    delete stream;
  }).detach();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream != nullptr) wait_for(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::shared_ptr<Flag> recorded;
  {
    const std::lock_guard lock(event->mutex);
    recorded = event->recorded;
  }
  if (recorded) enqueue(stream, [recorded] { recorded->wait(); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  ++events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  --events;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto flag = std::make_shared<Flag>();
  {
    const std::lock_guard lock(event->mutex);
    event->recorded = flag;
  }
  enqueue(stream, [flag] { flag->set(); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(event->mutex);
  if (!event->recorded || event->recorded->is_set()) return cudaSuccess;
  return last_error = cudaErrorNotReady;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  ++allocations;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  wait_for_device(chosen_device);
  std::free(memory);
  --allocations;
  return cudaSuccess;
}
// From host memory that is not pinned, the real one copies before it returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice) {
    enqueue(stream, [to, copy = std::string(static_cast<const char*>(from), bytes)] {
      std::memcpy(to, copy.data(), copy.size());
    });
    return cudaSuccess;
  }
  // No bytes may have no address.
  if (bytes > 0) enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  if (kind == cudaMemcpyDeviceToHost) return cudaStreamSynchronize(stream);
  return cudaSuccess;
}
}

// The kernel of comm/cuda, whose own object is then not linked.
cudaError_t assay::comm::copy_beside_kernels(std::byte* to, const std::byte* from,
                                             std::size_t bytes, cudaStream_t stream) {
  assay::fakecuda::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  ++assay::fakecuda::kernel_copies;
  return cudaSuccess;
}
