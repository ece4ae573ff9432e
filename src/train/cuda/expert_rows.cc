#include "train/cuda/expert_rows.h"

#include <set>
#include <thread>
#include <utility>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

// Longer than any step could take to reach this point.
constexpr std::chrono::minutes kLongestWait{10};

}  // namespace

ExpertRows::~ExpertRows() {
  for (auto& [place, sorted] : sorted_) {
    if (sorted.written != nullptr) cudaEventDestroy(sorted.written);
  }
  if (pinned_ != nullptr) cudaFreeHost(pinned_);
}

base::Result<void> ExpertRows::open(const step::Program& program) {
  std::set<std::pair<step::BufferId, std::int64_t>> places;
  for (const step::Op& op : program.ops) {
    const auto add = [&](const step::View& view) { places.insert({view.buffer, view.offset}); };
    if (op.kind == step::OpKind::kSortRows) add(op.out[2]);
    if (op.kind == step::OpKind::kArrangeRows) {
      for (const step::View& view : {op.in[0], op.in[1], op.out[0]}) add(view);
    }
  }
  if (places.empty()) return {};
  room_ = places.size();
  numbers_ = static_cast<std::size_t>(program.model.experts) + 1;
  if (cudaHostAlloc(reinterpret_cast<void**>(&pinned_), room_ * numbers_ * sizeof(std::int32_t),
                    cudaHostAllocMapped) != cudaSuccess) {
    return base::fail(
        base::unfit_error("memory", "pinned memory for the rows of experts cannot be allocated"));
  }
  return {};
}

std::int32_t* ExpertRows::begin_sort(Device& device, const void* place, std::int64_t numbers) {
  const std::size_t index = sorted_.size();
  const auto [at, is_new] = sorted_.try_emplace(place);
  Sorted& sorted = at->second;
  if (is_new) {
    if (index >= room_ || static_cast<std::size_t>(numbers) > numbers_) {
      device.failed("rows of experts: more places than the program has");
      return nullptr;
    }
    sorted.on_host = pinned_ + index * numbers_;
    device.check(cudaEventCreateWithFlags(&sorted.written, cudaEventDisableTiming), "event");
  }
  sorted.is_read = false;
  sorted.numbers = static_cast<std::size_t>(numbers);
  std::int32_t* on_device = nullptr;
  device.check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&on_device), sorted.on_host, 0),
               "pinned memory");
  return on_device;
}

void ExpertRows::end_sort(Device& device, const void* place) {
  const auto found = sorted_.find(place);
  if (found == sorted_.end()) return;
  device.check(cudaEventRecord(found->second.written, device.stream), "event");
}

// Bounded, and yields to other ranks' threads.
bool ExpertRows::wait(Device& device, const Sorted& sorted) {
  const auto begin = std::chrono::steady_clock::now();
  cudaError_t status = cudaEventQuery(sorted.written);
  while (status == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() - begin > kLongestWait) {
      device.failed("the device has not sorted the rows of experts for ten minutes");
      return false;
    }
    std::this_thread::yield();
    status = cudaEventQuery(sorted.written);
  }
  waited_ += std::chrono::steady_clock::now() - begin;
  if (status == cudaSuccess) static_cast<void>(cudaGetLastError());  // "not ready" is no error
  device.check(status, "rows of experts");
  return status == cudaSuccess;
}

std::span<const std::int32_t> ExpertRows::of(Device& device, const void* place) {
  const auto found = sorted_.find(place);
  if (found == sorted_.end()) {
    device.failed("rows of experts: a product before they were sorted");
    return {};
  }
  Sorted& sorted = found->second;
  if (!sorted.is_read) {
    if (!wait(device, sorted)) return {};
    sorted.rows.assign(sorted.on_host, sorted.on_host + sorted.numbers);
    sorted.is_read = true;
  }
  return sorted.rows;
}

}  // namespace assay::train::cuda
