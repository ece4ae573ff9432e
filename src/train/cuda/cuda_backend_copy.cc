// CudaBackendImpl::copy_out: copies state to the host on its own stream during the next step's
// forward and backward pass. Only the optimizer at its end changes the state, and waits for the
// copy on the device.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "train/cuda/cuda_backend_impl.h"
#include "train/state.h"

namespace assay::train::cuda {

// The size of the state or, with several ranks, of what this rank saves; 0 for programs that do not
// train.
std::size_t CudaBackendImpl::state_bytes() const {
  if (program_->choices.purpose != step::Purpose::kTrain || !options_.copies_state) return 0;
  if (program_->choices.layout.ranks() > 1) {
    return static_cast<std::size_t>(saved_bytes(*program_));
  }
  std::int64_t bytes = 0;
  for (const step::Storage storage :
       {step::Storage::kWeights, step::Storage::kRemainders, step::Storage::kMoments}) {
    bytes += plan_->of(storage);
  }
  return static_cast<std::size_t>(bytes);
}

base::Result<void> CudaBackendImpl::begin_pinning() {
  if (state_bytes() == 0 || pinned_ != nullptr) return {};
  ASSAY_TRY(pinned_, PinnedMemory::begin(state_bytes(), options_.device));
  return {};
}

// A failure here is harmless: copy_out() will try again.
void CudaBackendImpl::expect_copies() {
  const auto begun = begin_pinning();
  if (begun || std::exchange(noted_pinning_, true)) return;
  note("the next checkpoint cannot be copied to the host: " + begun.error().line());
}

base::Result<HostCopy> CudaBackendImpl::copy_out(const step::Program& program,
                                                 std::span<const step::View> views) {
  ASSAY_TRY_VOID(begin_pinning());  // does nothing if expect_copies() has started it
  if (pinned_ == nullptr) return Backend::copy_out(program, views);
  if (copy_stream_ == nullptr) {
    device_.check(cudaStreamCreateWithFlags(&copy_stream_, cudaStreamNonBlocking), "stream");
    device_.check(
        cudaEventCreateWithFlags(&copied_, cudaEventBlockingSync | cudaEventDisableTiming),
        "event");
  }
  const std::span<std::byte> memory = pinned_->wait();
  HostCopy copy{.memory = pinned_};
  std::size_t used = 0;
  for (const step::View& view : views) {
    const auto bytes = static_cast<std::size_t>(program.bytes_of(view));
    ASSAY_CHECK(view.rows == 1 || view.stride == view.cols, "state must be contiguous");
    ASSAY_CHECK(used + bytes <= memory.size(), "views must not exceed the state");
    const std::span<std::byte> to = memory.subspan(used, bytes);
    begin_copy(to, address(view), used);
    copy.views.push_back(to);
    used += bytes;
  }
  device_.check(cudaEventRecord(copied_, copy_stream_), "copying state");
  copying_ = true;
  ASSAY_TRY_VOID(outcome());
  copy.wait = [event = copied_, device = options_.device]() -> base::Result<void> {
    cudaSetDevice(device);
    const cudaError_t status = cudaEventSynchronize(event);
    if (status == cudaSuccess) return {};
    return base::fail(base::failed_error("copying state", cudaGetErrorString(status)));
  };
  return copy;
}

void CudaBackendImpl::begin_copy(std::span<std::byte> to, const std::byte* from, std::size_t at) {
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t left = PinnedMemory::kPiece - (at + done) % PinnedMemory::kPiece;
    const std::size_t bytes = std::min(left, to.size() - done);
    device_.check(
        cudaMemcpyAsync(to.data() + done, from + done, bytes, cudaMemcpyDeviceToHost, copy_stream_),
        "copying state");
    done += bytes;
  }
}

void CudaBackendImpl::wait_for_copy() {
  if (!copying_) return;
  copying_ = false;
  device_.check(cudaStreamWaitEvent(device_.stream, copied_), "copying state");
}

}  // namespace assay::train::cuda
