// GpuWork: what a run did on GPUs, summed over its processes. `assay run` counts it
// (observe/collect/gpu_counters.h); `assay show` and exports read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "store/database.h"

namespace assay::store {

struct GpuUse {
  std::string quantity;  // "kernels", "copies_to_device": docs/store.md has them all
  std::int64_t calls = 0;
  std::int64_t amount = 0;  // bytes; for graphs, nodes; for matmuls, millions of flops
  bool operator==(const GpuUse&) const = default;
};

// The flops of a row that counts matmuls; nothing for other rows.
inline std::optional<base::Flops> flops_of(const GpuUse& use) {
  if (use.quantity != "matmuls" && use.quantity != "captured_matmuls") return std::nullopt;
  return base::Flops(static_cast<double>(use.amount) * 1e6);
}

struct GpuMemory {
  std::string device;           // its UUID: "GPU-…", also for a MIG slice
  std::int64_t peak_bytes = 0;  // the most that one process allocated at once
  bool operator==(const GpuMemory&) const = default;
};

// The run's limits on a device when the run ended, and what it used.
struct GpuShareUse {
  std::string device;  // its UUID; empty: every device without limits of its own
  std::optional<std::int64_t> memory_bytes;       // none: no limit
  std::optional<std::int64_t> share_thousandths;  // of the device's time; none: no limit
  std::string priority;                           // "high", "normal", "low"
  bool borrow = false;                            // could use time that no other run wanted
  std::int64_t busy_ns = 0;                       // 0 if its launches were never paced
  std::int64_t waited_ns = 0;
  bool operator==(const GpuShareUse&) const = default;
};

struct GpuCollectiveUse {
  std::string communicator;  // 16 hexadecimal digits, the same in all ranks
  std::int64_t ranks = 0;
  std::string operation;   // "all-reduce"
  std::string type;        // "bf16"
  std::int64_t calls = 0;  // summed over the ranks that this run recorded
  std::int64_t bytes = 0;  // size of the whole message, summed over the calls
  bool operator==(const GpuCollectiveUse&) const = default;
};

struct GpuWork {
  std::vector<GpuUse> use;  // quantities of zero are left out
  std::vector<GpuMemory> memory;
  std::vector<GpuCollectiveUse> collectives;
  std::vector<GpuShareUse> shares;  // devices on which a limit was set or launches waited

  [[nodiscard]] bool empty() const {
    return use.empty() && memory.empty() && collectives.empty() && shares.empty();
  }
  bool operator==(const GpuWork&) const = default;
};

// Internal to src/store.
base::Result<void> insert_gpu_work(Database& database, std::int64_t run, const GpuWork& work);
base::Result<GpuWork> gpu_work_of(Database& database, std::int64_t run);

}  // namespace assay::store
