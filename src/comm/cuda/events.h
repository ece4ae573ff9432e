// CUDA events and streams as used by the communicators of this folder, and CUDA errors as
// base::Error.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"

namespace assay::comm {

inline base::Result<void> cuda_done(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return {};
  return base::fail(base::failed_error(what, cudaGetErrorString(status)));
}

// cudaEventQuery without leaving "not ready" as the thread's last error.
inline cudaError_t event_state(cudaEvent_t event) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) cudaGetLastError();
  return state;
}

// A pool of events, so that none has to be created during training.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool() {
    for (const cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  base::Result<cudaEvent_t> take() {
    if (free_.empty()) {
      cudaEvent_t event = nullptr;
      ASSAY_TRY_VOID(
          cuda_done(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"));
      return event;
    }
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  void give_back(cudaEvent_t event) {
    if (event != nullptr) free_.push_back(event);
  }

 private:
  std::vector<cudaEvent_t> free_;
};

// A stream with higher priority than those for computation, because others wait for what it moves.
class CommunicationStream {
 public:
  static base::Result<CommunicationStream> make() {
    int least = 0;
    int greatest = 0;
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    CommunicationStream made;
    ASSAY_TRY_VOID(
        cuda_done(cudaStreamCreateWithPriority(&made.stream_, cudaStreamNonBlocking, greatest),
                  "making a stream"));
    return made;
  }
  CommunicationStream(CommunicationStream&& other) noexcept
      : stream_(std::exchange(other.stream_, nullptr)) {}
  CommunicationStream& operator=(CommunicationStream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  // Queued work is still completed.
  ~CommunicationStream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  CommunicationStream() = default;
  cudaStream_t stream_ = nullptr;
};

}  // namespace assay::comm
