#include "gpu_timeline.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace assay::bench {
namespace {

using TimeSpan = std::pair<std::uint64_t, std::uint64_t>;

struct Records {
  std::mutex mutex;
  std::vector<TimeSpan> kernels;
  std::vector<std::string> names;  // of the kernels
  std::string lines;               // all of them
  std::vector<TimeSpan> copies;
  std::vector<std::uint64_t> sizes;  // of the copies
};
Records& records() {
  static Records all;
  return all;
}

base::Result<void> cupti_done(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return {};
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  return base::fail(base::failed_error("CUPTI", std::string(what) + ": " + (text ? text : "?")));
}

constexpr std::size_t kBufferBytes = std::size_t{8} << 20U;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *most = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      const std::string name = kernel->name == nullptr ? "?" : kernel->name;
      // A kernel that copies between ranks (comm/cuda/copy_kernel.h) is no computation.
      if (name.find("copy_between_ranks") != std::string::npos) {
        all.copies.emplace_back(kernel->start, kernel->end);
        all.sizes.push_back(0);
        all.lines += fmt::format("copy 0,{},{},{},{},0\n", kernel->streamId, kernel->channelID,
                                 kernel->start, kernel->end);
        continue;
      }
      all.kernels.emplace_back(kernel->start, kernel->end);
      all.names.push_back(name);
      all.lines += fmt::format("kernel,{},{},{},{},{}\n", kernel->streamId, kernel->channelID,
                               kernel->start, kernel->end, all.names.back().substr(0, 70));
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      if (copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD) {
        all.copies.emplace_back(copy->start, copy->end);
        all.sizes.push_back(copy->bytes);
        all.lines +=
            fmt::format("copy {},{},{},{},{},{}\n", static_cast<int>(copy->channelType),
                        copy->streamId, copy->channelID, copy->start, copy->end, copy->bytes);
      }
    }
  }
  std::free(buffer);
}

// Disjoint and in order.
std::vector<TimeSpan> together(std::vector<TimeSpan> list) {
  std::ranges::sort(list);
  std::vector<TimeSpan> merged;
  for (const TimeSpan& one : list) {
    if (!merged.empty() && one.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, one.second);
    } else {
      merged.push_back(one);
    }
  }
  return merged;
}

double length_ms(const std::vector<TimeSpan>& list) {
  std::uint64_t sum = 0;
  for (const auto& [from, to] : list) sum += to - from;
  return static_cast<double>(sum) / 1e6;
}

std::vector<TimeSpan> common(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  std::vector<TimeSpan> list;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const std::uint64_t from = std::max(x->first, y->first);
    const std::uint64_t to = std::min(x->second, y->second);
    if (from < to) list.emplace_back(from, to);
    x->second < y->second ? ++x : ++y;
  }
  return list;
}

// The parts of `a` in which nothing of `b` is.
std::vector<TimeSpan> without(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  std::vector<TimeSpan> list;
  for (const auto& [from, to] : a) {
    std::uint64_t at = from;
    for (const auto& [other_from, other_to] : common({{from, to}}, b)) {
      if (other_from > at) list.emplace_back(at, other_from);
      at = other_to;
    }
    if (to > at) list.emplace_back(at, to);
  }
  return list;
}

}  // namespace

base::Result<void> GpuTimeline::start() {
  Records& all = records();
  {
    const std::lock_guard lock(all.mutex);
    all.kernels.clear();
    all.names.clear();
    all.lines.clear();
    all.copies.clear();
    all.sizes.clear();
  }
  ASSAY_TRY_VOID(cupti_done(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "callbacks"));
  for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY}) {
    ASSAY_TRY_VOID(cupti_done(cuptiActivityEnable(kind), "starting"));
  }
  return {};
}

base::Result<Overlap> GpuTimeline::stop() {
  cudaDeviceSynchronize();
  for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY}) {
    ASSAY_TRY_VOID(cupti_done(cuptiActivityDisable(kind), "stopping"));
  }
  ASSAY_TRY_VOID(cupti_done(cuptiActivityFlushAll(1), "reading"));
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  const std::vector<TimeSpan> kernels = together(all.kernels);
  const std::vector<TimeSpan> copies = together(all.copies);
  Overlap found{.copied_ms = length_ms(copies),
                .hidden_ms = length_ms(common(kernels, copies)),
                .kernels_ms = length_ms(kernels),
                .copies = static_cast<std::int64_t>(all.copies.size()),
                .kernels = static_cast<std::int64_t>(all.kernels.size()),
                .records = all.lines};
  for (std::size_t i = 0; i < all.copies.size(); ++i) {
    Overlap::BySize& some = found.by_size[all.sizes[i]];
    const std::vector<TimeSpan> one = {all.copies[i]};
    ++some.copies;
    some.ms += length_ms(one);
    some.exposed_ms += length_ms(one) - length_ms(common(kernels, one));
  }
  if (kernels.empty()) return found;
  for (const auto& [from, to] : without(copies, kernels)) {
    const double at =
        (static_cast<double>(from) - static_cast<double>(kernels.front().first)) / 1e6;
    found.exposed.push_back({at, static_cast<double>(to - from) / 1e6, {}, {}});
    std::uint64_t last = 0;
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < all.kernels.size(); ++i) {
      const auto& [begin, end] = all.kernels[i];
      if (end <= from && end > last) {
        last = end;
        found.exposed.back().after = all.names[i];
      }
      if (begin >= to && begin < next) {
        next = begin;
        found.exposed.back().before = all.names[i];
      }
    }
  }
  std::ranges::sort(found.exposed, std::greater(), &Overlap::Gap::ms);
  return found;
}

}  // namespace assay::bench
