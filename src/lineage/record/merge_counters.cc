#include "lineage/record/merge_counters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace assay::lineage {
namespace {

bool add_to(std::int64_t& sum, std::int64_t value) {
  return !__builtin_add_overflow(sum, value, &sum);
}

bool add_usage(const store::Usage& usage, store::Usage& sum) {
  sum.user_s += usage.user_s;
  sum.system_s += usage.system_s;
  sum.max_rss_bytes = std::max(sum.max_rss_bytes, usage.max_rss_bytes);
  return add_to(sum.read_bytes, usage.read_bytes) && add_to(sum.written_bytes, usage.written_bytes);
}

// The entry for which `same` holds, or a new one.
template <class Entry, class Same>
Entry& entry_for(std::vector<Entry>& list, const Entry& entry, const Same& same) {
  const auto found = std::ranges::find_if(list, same);
  return found != list.end() ? *found : list.emplace_back(entry);
}

bool add_gpu(const store::GpuWork& work, store::GpuWork& sum) {
  bool fits = true;
  for (store::GpuUse use : work.use) {
    const auto calls = std::exchange(use.calls, 0);
    const auto amount = std::exchange(use.amount, 0);
    auto& to = entry_for(sum.use, use, [&](const auto& u) { return u.quantity == use.quantity; });
    fits = add_to(to.calls, calls) && add_to(to.amount, amount) && fits;
  }
  for (const store::GpuMemory& memory : work.memory) {
    auto& to =
        entry_for(sum.memory, memory, [&](const auto& m) { return m.device == memory.device; });
    to.peak_bytes = std::max(to.peak_bytes, memory.peak_bytes);
  }
  for (store::GpuCollectiveUse row : work.collectives) {
    const auto calls = std::exchange(row.calls, 0);
    const auto bytes = std::exchange(row.bytes, 0);
    auto& to = entry_for(sum.collectives, row, [&](const auto& c) {
      return c.communicator == row.communicator && c.ranks == row.ranks &&
             c.operation == row.operation && c.type == row.type;
    });
    fits = add_to(to.calls, calls) && add_to(to.bytes, bytes) && fits;
  }
  for (store::GpuShareUse share : work.shares) {
    const auto busy_ns = std::exchange(share.busy_ns, 0);
    const auto waited_ns = std::exchange(share.waited_ns, 0);
    auto& to =
        entry_for(sum.shares, share, [&](const auto& s) { return s.device == share.device; });
    fits = add_to(to.busy_ns, busy_ns) && add_to(to.waited_ns, waited_ns) && fits;
  }
  return fits;
}

}  // namespace

bool add_counters(const Part& part, Part& whole) {
  store::Usage usage = whole.usage;
  store::GpuWork gpu = whole.gpu;
  std::int64_t dropped = whole.dropped;
  if (!add_usage(part.usage, usage) || !add_gpu(part.gpu, gpu) || !add_to(dropped, part.dropped)) {
    return false;
  }
  whole.usage = usage;
  whole.gpu = std::move(gpu);
  whole.dropped = dropped;
  return true;
}

}  // namespace assay::lineage
