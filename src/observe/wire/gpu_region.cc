#include "observe/wire/gpu_region.h"

#include <fcntl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace assay::wire {
namespace {

constexpr const char* kQuantityNames[] = {"kernels",
                                          "kernels_ex",
                                          "kernels_cooperative",
                                          "graphs",
                                          "graph_kernels",
                                          "captured_kernels",
                                          "copies_to_device",
                                          "copies_to_host",
                                          "copies_on_device",
                                          "copies_to_peer",
                                          "copies_unified",
                                          "copies_array",
                                          "sets",
                                          "allocs_device",
                                          "allocs_async",
                                          "allocs_virtual",
                                          "allocs_managed",
                                          "allocs_array",
                                          "allocs_host",
                                          "allocs_graph",
                                          "frees",
                                          "refused_allocs",
                                          "syncs_context",
                                          "syncs_stream",
                                          "syncs_event",
                                          "contexts",
                                          "modules",
                                          "nccl_groups",
                                          "matmuls",
                                          "captured_matmuls"};
static_assert(sizeof kQuantityNames / sizeof kQuantityNames[0] == kGpuQuantities);

constexpr const char* kOperationNames[] = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast",
    "reduce",     "gather",         "scatter",    "send",       "receive"};
static_assert(sizeof kOperationNames / sizeof kOperationNames[0] == kGpuOperations);

constexpr const char* kTypeNames[] = {"int8",    "uint8",   "int32",   "uint32", "int64", "uint64",
                                      "float16", "float32", "float64", "bf16",   "fp8e4", "fp8e5"};

}  // namespace

const char* name_of(GpuQuantity quantity) {
  return kQuantityNames[static_cast<std::size_t>(quantity)];
}

const char* name_of(GpuOperation operation) {
  return kOperationNames[static_cast<std::size_t>(operation)];
}

const char* nccl_type_name(unsigned type) {
  return type < sizeof kTypeNames / sizeof kTypeNames[0] ? kTypeNames[type] : "?";
}

GpuShare share_of(const GpuRegion& region, const GpuDevice& device) {
  const auto either = [&](std::atomic<std::uint32_t> GpuLimits::*word) {
    const std::uint32_t own = (device.limits.*word).load(std::memory_order_relaxed);
    return own != 0 ? own : (region.header.limits.*word).load(std::memory_order_relaxed);
  };
  GpuShare share;
  if (const std::uint32_t thousandths = either(&GpuLimits::share); thousandths != 0) {
    share.thousandths = std::min(thousandths, kGpuWholeShare);
  }
  if (const std::uint32_t priority = either(&GpuLimits::priority); priority != 0) {
    share.priority = static_cast<GpuPriority>(priority);
  }
  share.borrow = either(&GpuLimits::borrow) == 1;
  return share;
}

bool make_gpu_region(int file) {
  if (const int error = ::posix_fallocate(file, 0, sizeof(GpuRegion)); error != 0) {
    errno = error;
    return false;
  }
  GpuHeader header{};
  header.magic = kGpuMagic;
  header.version = kGpuVersion;
  header.size = sizeof(GpuRegion);
  if (::getrandom(&header.run, sizeof header.run, GRND_NONBLOCK) != sizeof header.run) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    header.run = gpu_mix(gpu_mix(static_cast<std::uint64_t>(::getpid())) ^
                         static_cast<std::uint64_t>(now.tv_nsec));
  }
  return ::pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
}

GpuTotals sum_of(const GpuRegion& region) {
  GpuTotals totals;
  const std::size_t given =
      std::min<std::size_t>(region.header.next_block.load(std::memory_order_acquire), kGpuBlocks);
  for (std::size_t block = 0; block < given; ++block) {
    for (std::size_t i = 0; i < kGpuQuantities; ++i) {
      const GpuCount& counted = region.blocks[block].counts[i];
      totals.of[i].calls += counted.calls.load(std::memory_order_relaxed);
      totals.of[i].amount += counted.amount.load(std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      totals.flops_left[i] += region.blocks[block].flops_left[i].load(std::memory_order_relaxed);
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t quantity = static_cast<std::size_t>(GpuQuantity::kMatmul) + i;
    totals.of[quantity].amount += totals.flops_left[i] / kGpuFlopUnit;
    totals.flops_left[i] %= kGpuFlopUnit;
  }
  return totals;
}

}  // namespace assay::wire
