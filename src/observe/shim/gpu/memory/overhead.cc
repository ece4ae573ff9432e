#include "observe/shim/gpu/memory/overhead.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/memory/pools.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/spin_lock.h"
#include "observe/wire/gpu_uuid.h"

namespace assay::gpu {
namespace {

using wire::GpuSlot;
using wire::kGpuDevices;

constexpr std::uint64_t kOften = 1'000;    // milliseconds between two queries
constexpr std::uint64_t kAnyway = 30'000;  // without new loads: drivers load code lazily

struct Row {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used;
  unsigned instance, compute_instance;
};
static_assert(sizeof(Row) == 24);
constexpr unsigned kRows = 1024;
constexpr unsigned long long kNotAvailable = ~0ULL;

constinit std::atomic<std::uint64_t> next_look[kGpuDevices] = {};
constinit std::atomic<bool> looking{false};  // one thread queries, the others do not wait for it
// Used by that thread:
std::uint64_t last_loads[kGpuDevices];
std::uint64_t last_asked[kGpuDevices];
bool changed[kGpuDevices];
bool said_doubt;
enum class Nvml { kUnknown, kOpen, kMissing } nvml = Nvml::kUnknown;
Row rows[kRows];

std::uint64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000 + 1;
}

// Contexts and modules created by this process so far.
std::uint64_t loads() {
  std::uint64_t sum = 0;
  std::uint32_t at = region()->slots[slot()].blocks.load();
  for (std::size_t i = 0; i < wire::kGpuBlocks && at != 0 && at <= wire::kGpuBlocks; ++i) {
    const wire::GpuBlock& block = region()->blocks[at - 1];
    for (const GpuQuantity quantity : {GpuQuantity::kContext, GpuQuantity::kModule}) {
      sum += block.counts[static_cast<std::size_t>(quantity)].calls.load(std::memory_order_relaxed);
    }
    at = block.sibling.load();
  }
  return sum;
}

bool open_nvml() {
  if (nvml != Nvml::kUnknown) return nvml == Nvml::kOpen;
  nvml = Nvml::kMissing;
  if (dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    dlerror();
  } else if (nvml_ready() && helpers.nvml_init != nullptr && helpers.nvml_by_uuid != nullptr &&
             helpers.nvml_processes != nullptr && helpers.nvml_init() == 0) {
    nvml = Nvml::kOpen;
  }
  if (nvml == Nvml::kMissing) log_line("no NVML: what contexts and modules take is not counted");
  return nvml == Nvml::kOpen;
}

void* device_of(std::uint32_t device_index) {
  const wire::GpuDevice& device = region()->devices[device_index];
  const wire::GpuUuid uuid = {device.uuid[0].load(), device.uuid[1].load()};
  char text[wire::kGpuUuidTextSize + 1];
  void* found = nullptr;
  for (const char* kind : {"GPU", "MIG"}) {
    wire::print_uuid(kind, uuid, text);
    if (helpers.nvml_by_uuid(text, &found) == 0) return found;
  }
  return nullptr;
}

// NVML uses pids of the initial namespace, in which our own pid may belong to another process if we
// are in another namespace.
bool are_pids_of_host() {
  constexpr ino_t kFirstNamespace = 0xEFFFFFFC;
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kFirstNamespace;
}

bool all_are_here(unsigned number) {
  for (unsigned i = 0; i < number; ++i) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%u", rows[i].pid);
    if (access(path, F_OK) != 0) return false;
  }
  return true;
}

// Processes with a context are listed; if there is only one, it is this one, whatever its pid
// there.
const Row* own_row(unsigned number) {
  const bool by_pid = are_pids_of_host() || all_are_here(number);
  if (!by_pid) return number == 1 ? rows : nullptr;
  for (unsigned i = 0; i < number; ++i) {
    if (rows[i].pid == static_cast<unsigned>(getpid())) return &rows[i];
  }
  return nullptr;
}

// What NVML reports for this process. False: unknown.
bool query_overhead(std::uint32_t device_index, std::uint64_t& bytes) {
  void* device = device_of(device_index);
  unsigned number = kRows;
  if (device == nullptr || helpers.nvml_processes(device, &number, rows) != 0) return false;
  const Row* own = own_row(number < kRows ? number : kRows);
  if (own == nullptr || own->used == kNotAvailable) return false;
  bytes = own->used;
  return true;
}

void update_overhead(std::uint32_t device_index) {
  std::uint64_t taken = 0;
  const GpuSlot& mine = region()->slots[slot()];
  settle_pools(device_index);  // their memory is not overhead
  const std::uint64_t held = mine.used[device_index].load();
  if (!query_overhead(device_index, taken)) {
    if (!said_doubt)
      log_line("NVML does not report the memory of contexts and modules of this process");
    said_doubt = true;
    return;
  }
  settle_pools(device_index);
  if (mine.used[device_index].load() != held) {  // another thread is allocating: retry in a second
    changed[device_index] = true;
    return;
  }
  const std::uint64_t overhead = mine.overhead[device_index].load();
  const std::uint64_t counted = held - (overhead < held ? overhead : held);
  const std::uint64_t now = taken > counted ? taken - counted : 0;
  changed[device_index] = now != overhead;
  if (changed[device_index]) set_overhead(device_index, now);
}

}  // namespace

void check_overhead(std::uint32_t device_index) {
  const std::uint64_t now = now_ms();
  if (now < next_look[device_index].load(std::memory_order_relaxed)) return;
  if (looking.exchange(true, std::memory_order_acquire)) return;
  const int error = errno;
  next_look[device_index].store(now + kOften, std::memory_order_relaxed);
  const std::uint64_t loaded = loads();
  const bool due = loaded != last_loads[device_index] || changed[device_index] ||
                   (loaded != 0 && now > last_asked[device_index] + kAnyway);
  if (due && open_nvml()) {
    last_loads[device_index] = loaded;
    last_asked[device_index] = now;
    update_overhead(device_index);
  }
  errno = error;
  looking.store(false, std::memory_order_release);
}

void forget_overhead() {
  looking.store(false, std::memory_order_relaxed);
  for (std::size_t device_index = 0; device_index < kGpuDevices; ++device_index) {
    next_look[device_index].store(0, std::memory_order_relaxed);
    last_loads[device_index] = 0;
    changed[device_index] = false;
  }
  forget_pools();
}

}  // namespace assay::gpu
