// The GPU region: one file in shared memory, mapped by `assay run` and by every process of a run
// that uses a GPU. Each thread counts in its own block (one writer, plain stores), each process has
// a slot, each device an entry for limits and use. Readers can sum at any time.
//
//   GpuHeader | GpuDevice × 16 | GpuSlot × 1024 | GpuCollective × 4096 | GpuBlock × 4096
//
// No process ever waits for another. A slot belongs to the process that holds the POSIX record lock
// on the byte of the file with the slot's number; the kernel releases it when the process dies.
// Blocks are passed on with their counts, so the sum over all blocks is always the run's total.
//
// Used inside the target process: no allocation, no exceptions, no library calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::wire {

inline constexpr std::uint64_t kGpuMagic = 0x3155504759415341;  // "ASAYGPU1"
inline constexpr std::uint32_t kGpuVersion = 5;

// Environment: where the region is; its log file (optional).
inline constexpr const char* kGpuRegionVariable = "ASSAY_GPU_REGION";
inline constexpr const char* kGpuLogVariable = "ASSAY_GPU_LOG";

// What is counted: calls, and an amount (bytes; for kGraph, nodes; for matmuls, millions of flops).
enum class GpuQuantity : std::uint8_t {
  kKernel,       // cuLaunchKernel and its predecessors
  kKernelEx,     // cuLaunchKernelEx
  kCooperative,  // cuLaunchCooperativeKernel
  kGraph,        // cuGraphLaunch; amount: nodes
  kGraphKernel,  // kernels among those nodes
  kCaptured,     // kernels captured into a graph: counted above too, but run only with the graph
  kCopyToDevice,
  kCopyToHost,
  kCopyOnDevice,
  kCopyToPeer,
  kCopyUnified,  // the driver infers the direction from the addresses
  kCopyArray,    // from or to an array
  kSet,
  kAllocDevice,
  kAllocAsync,    // from pools
  kAllocVirtual,  // cuMemCreate
  kAllocManaged,
  kAllocArray,
  kAllocHost,
  kAllocGraph,  // allocation nodes, when they are created
  kFree,        // amount: of known allocations
  kRefused,     // allocations that the driver, or a limit, refused
  kSyncContext,
  kSyncStream,
  kSyncEvent,
  kContext,  // created, or a primary one retained
  kModule,   // modules and libraries loaded
  kNcclGroup,
  kMatmul,          // of cuBLAS and cuBLASLt; amount: what ran at the call
  kMatmulCaptured,  // captured into a graph: counted above as calls, but run only with the graph
};
inline constexpr std::size_t kGpuQuantities =
    static_cast<std::size_t>(GpuQuantity::kMatmulCaptured) + 1;

const char* name_of(GpuQuantity quantity);

struct GpuCount {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> amount;
};

// A GPU does 10^15 flops per second: a 64-bit count of flops would overflow within hours.
inline constexpr std::uint64_t kGpuFlopUnit = 1'000'000;

// Counters of one thread. They only grow, also when the block gets another owner.
struct alignas(64) GpuBlock {
  std::atomic<std::uint32_t> owner;    // slot + 1; 0: none yet
  std::atomic<std::uint32_t> next;     // in its process's list of idle blocks: block + 1
  std::atomic<std::uint32_t> sibling;  // in its slot's list of all blocks: block + 1
  std::uint32_t reserved_word;
  std::atomic<std::int64_t> budget;   // GPU nanoseconds that may be launched before a refill
  std::atomic<std::int64_t> granted;  // the budget at the last refill
  // Flops that are not a whole unit yet, of kMatmul and kMatmulCaptured.
  std::atomic<std::uint64_t> flops_left[2];
  std::atomic<std::uint64_t> granted_at_ns;  // CLOCK_MONOTONIC; 0: before there was a limit
  std::uint64_t reserved;
  GpuCount counts[kGpuQuantities];
};
static_assert(sizeof(GpuBlock) == 576 && offsetof(GpuBlock, counts) == 64);

inline constexpr std::size_t kGpuDevices = 16;

struct alignas(64) GpuSlot {
  std::atomic<std::int32_t> process;        // pid; 0: never used; stays when the owner has exited
  std::atomic<std::uint32_t> blocks;        // the first of its blocks: block + 1; they stay as well
  std::atomic<std::uint64_t> start_ticks;   // /proc/PID/stat, field 22
  std::atomic<std::uint64_t> namespace_id;  // of pids: the inode of /proc/self/ns/pid
  // The change of `used` in progress, so that a process that finds the owner exited knows what it
  // was doing and whether that took effect (gpu_ledger.h).
  std::atomic<std::uint64_t> sequence;      // the number of the last change that was begun
  std::atomic<std::uint64_t> entry;         // of the one in progress; 0: none
  std::atomic<std::uint64_t> entry_device;  // the device it concerns
  std::atomic<std::uint64_t> entry_after;   // what `used` will be there
  std::atomic<std::uint64_t> confirmed;  // other processes saw changes up to this one take effect
  // Bytes held now, by device of the region; the most so far; and the part taken by contexts and
  // modules.
  std::atomic<std::uint64_t> used[kGpuDevices];
  std::atomic<std::uint64_t> peak[kGpuDevices];
  std::atomic<std::uint64_t> overhead[kGpuDevices];
};
static_assert(sizeof(GpuSlot) == 448);

// What a run may use of a device. Set before the command starts, and changed by `assay limit`,
// which then increments GpuHeader::generation. 0: not set, so the run's limits (GpuHeader::limits)
// apply; if those are not set either, there is no limit.
struct GpuLimits {
  std::atomic<std::uint64_t> bytes;     // for all processes of the run; kGpuUnlimited: none
  std::atomic<std::uint32_t> share;     // of the device's time, in thousandths; 1000: all of it
  std::atomic<std::uint32_t> priority;  // GpuPriority
  std::atomic<std::uint32_t> borrow;    // 1: may use time that no other run wants, 2: may not
  std::uint32_t reserved;
};
static_assert(sizeof(GpuLimits) == 24);
inline constexpr std::uint64_t kGpuUnlimited = ~std::uint64_t{0};
inline constexpr std::uint32_t kGpuWholeShare = 1000;
enum class GpuPriority : std::uint32_t { kUnset, kLow, kNormal, kHigh };

// A device that some process has used, or that has a limit. Claimed by a compare-and-swap of the
// key; the rest is written by any process that knows it, always the same.
struct alignas(64) GpuDevice {
  std::atomic<std::uint64_t> key;  // device_key(uuid); 0: free
  std::atomic<std::uint64_t> uuid[2];
  std::atomic<std::uint64_t> total;  // bytes of the card; 0: not known
  GpuLimits limits;
  std::uint64_t reserved;
  // Bytes reserved against the limit, and the mark of the last change: exchanged together, as one
  // word of 16 bytes (gpu_ledger.h).
  alignas(64) std::atomic<std::uint64_t> used;
  std::atomic<std::uint64_t> last;
  std::uint64_t reserved_memory[6];
  // Nanoseconds of device time that the run has used, and that it has waited while limited.
  alignas(64) std::atomic<std::uint64_t> busy_ns;
  std::atomic<std::uint64_t> waited_ns;
  std::uint64_t reserved_compute[6];
};
static_assert(sizeof(GpuDevice) == 192);

// What one process did with one communicator: one collective, one type. Claimed by its key.
struct alignas(64) GpuCollective {
  std::atomic<std::uint64_t> key;           // 0: free
  std::atomic<std::uint64_t> communicator;  // the same in all ranks
  std::atomic<std::uint32_t> ranks;
  std::atomic<std::uint32_t> rank;
  std::atomic<std::uint16_t> operation;  // GpuOperation
  std::atomic<std::uint16_t> type;       // as NCCL numbers them
  std::atomic<std::uint32_t> slot;
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> bytes;  // of the whole message over all ranks, summed over the calls
  std::uint64_t reserved[2];
};
static_assert(sizeof(GpuCollective) == 64);

enum class GpuOperation : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSend,
  kReceive,
};
inline constexpr std::size_t kGpuOperations = static_cast<std::size_t>(GpuOperation::kReceive) + 1;

const char* name_of(GpuOperation operation);
// "bf16", "float32", …; "?" for a type that newer versions of NCCL have added.
const char* nccl_type_name(unsigned type);
// Bytes of an element, 0 where that is not known.
constexpr std::uint64_t nccl_type_size(unsigned type) {
  constexpr std::uint8_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type < sizeof kSizes ? kSizes[type] : 0;
}

inline constexpr std::size_t kGpuSlots = 1024;
inline constexpr std::size_t kGpuCollectives = 4096;
inline constexpr std::size_t kGpuBlocks = 4096;

struct GpuHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t generation_reserved;
  std::uint64_t size;  // of the region; a process that expects another size does not use it
  std::uint64_t run;   // a random number that identifies the run on this machine
  // Incremented whenever limits change, for processes that cache them.
  std::atomic<std::uint64_t> generation;
  GpuLimits limits;  // of every device without limits of its own
  // Slots and blocks with a lower index have been used at least once.
  alignas(64) std::atomic<std::uint32_t> next_slot;
  std::atomic<std::uint32_t> next_block;
  // Threads and collectives for which there was no space: totals are too low then.
  alignas(64) std::atomic<std::uint64_t> lost_threads;
  std::atomic<std::uint64_t> lost_collectives;
};

struct GpuRegion {
  alignas(4096) GpuHeader header;
  alignas(4096) GpuDevice devices[kGpuDevices];
  GpuSlot slots[kGpuSlots];
  GpuCollective collectives[kGpuCollectives];
  GpuBlock blocks[kGpuBlocks];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline bool is_valid(const GpuHeader& header, std::uint64_t file_size) {
  return header.magic == kGpuMagic && header.version == kGpuVersion &&
         header.size == sizeof(GpuRegion) && file_size >= sizeof(GpuRegion);
}

// Spreads all bits over all bits (the finisher of splitmix64). Never 0, which means "free".
constexpr std::uint64_t gpu_mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EB;
  value ^= value >> 31U;
  return value == 0 ? 1 : value;
}

constexpr std::uint64_t device_key(std::uint64_t uuid_low, std::uint64_t uuid_high) {
  return gpu_mix(gpu_mix(uuid_low) ^ uuid_high);
}

// The index of a device, claimed if it is new; kGpuDevices if all are taken.
inline std::size_t claim_device(GpuRegion& region, std::uint64_t low, std::uint64_t high) {
  const std::uint64_t key = device_key(low, high);
  for (std::size_t i = 0; i < kGpuDevices; ++i) {
    GpuDevice& device = region.devices[i];
    std::uint64_t found = device.key.load(std::memory_order_relaxed);
    if (found == 0 && device.key.compare_exchange_strong(found, key)) found = key;
    if (found != key) continue;
    device.uuid[0].store(low, std::memory_order_relaxed);
    device.uuid[1].store(high, std::memory_order_relaxed);
    return i;
  }
  return kGpuDevices;
}

// The memory limit of a device: its own, else the run's. 0 bytes: no limit.
inline std::uint64_t byte_limit(const GpuRegion& region, const GpuDevice& device) {
  std::uint64_t bytes = device.limits.bytes.load(std::memory_order_relaxed);
  if (bytes == 0) bytes = region.header.limits.bytes.load(std::memory_order_relaxed);
  return bytes == kGpuUnlimited ? 0 : bytes;
}
struct GpuShare {
  std::uint32_t thousandths = kGpuWholeShare;
  GpuPriority priority = GpuPriority::kNormal;
  bool borrow = false;
  // Whether the run's launches have to be paced at all.
  [[nodiscard]] bool limited() const {
    return thousandths < kGpuWholeShare || priority != GpuPriority::kNormal;
  }
};
GpuShare share_of(const GpuRegion& region, const GpuDevice& device);

// Turns an empty file into a region: allocates space first, so that no process gets a SIGBUS for
// lack of it, and writes the header last. System calls only; false, with errno, on failure.
bool make_gpu_region(int file);

// Counts so far of all threads of all processes, running or exited.
struct GpuTotals {
  struct Total {
    std::uint64_t calls = 0;
    std::uint64_t amount = 0;
    bool operator==(const Total&) const = default;
  };
  Total of[kGpuQuantities];
  // Remainders of kMatmul and kMatmulCaptured below one unit.
  std::uint64_t flops_left[2] = {};

  [[nodiscard]] const Total& operator[](GpuQuantity quantity) const {
    return of[static_cast<std::size_t>(quantity)];
  }
};
GpuTotals sum_of(const GpuRegion& region);

}  // namespace assay::wire
