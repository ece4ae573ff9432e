// NCCL: collectives by communicator, operation and type. Bytes are those of the whole message:
// every rank counts all that a gather collects or a scatter distributes.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/shim/gpu/size_map.h"

namespace assay::gpu {
namespace {

using wire::GpuCollective;
using wire::GpuOperation;
using wire::kGpuCollectives;

constexpr int kNcclInternalError = 3;

struct UniqueId {
  unsigned char bytes[128];
};

std::uint64_t hash_of(const UniqueId& id) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < sizeof id.bytes; i += sizeof hash) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, id.bytes + i, sizeof word);
    hash = wire::gpu_mix(hash ^ word);
  }
  return hash;
}

std::uint64_t key_of(const void* communicator) {
  return reinterpret_cast<std::uint64_t>(communicator);
}

// Queried at the first collective: a communicator may be created in the background and cannot be
// queried before.
SizeMapValue known_of(void* communicator) {
  SizeMapValue known;
  const bool found = communicators.find(key_of(communicator), known);
  if (found && known.first != 0) return known;
  int ranks = 0;
  int rank = 0;
  if (helpers.nccl_count == nullptr || helpers.nccl_count(communicator, &ranks) != 0) return known;
  if (helpers.nccl_rank != nullptr) helpers.nccl_rank(communicator, &rank);
  known.first = static_cast<std::uint32_t>(ranks);
  known.second = static_cast<std::uint32_t>(rank);
  communicators.insert(key_of(communicator), known);
  return known;
}

GpuCollective* row_of(std::uint64_t key) {
  std::size_t at = key % kGpuCollectives;
  for (std::size_t tried = 0; tried < kGpuCollectives; ++tried) {
    GpuCollective& row = region()->collectives[at];
    std::uint64_t found = row.key.load(std::memory_order_acquire);
    if (found == 0 && row.key.compare_exchange_strong(found, key)) return &row;
    if (found == key) return &row;
    at = (at + 1) % kGpuCollectives;
  }
  return nullptr;
}

enum class Message { kOneRanks, kAllRanks };  // whose elements are counted

void collective(GpuOperation operation, std::size_t elements, int type, void* communicator,
                Message message) {
  if (region() == nullptr) return;
  block();  // allocates a slot
  const SizeMapValue known = known_of(communicator);
  const auto mine = static_cast<std::uint32_t>(slot());
  const auto kind = static_cast<std::uint16_t>(operation);
  const auto of_type = static_cast<std::uint16_t>(type);
  const std::uint64_t key =
      wire::gpu_mix(wire::gpu_mix(known.size ^ (std::uint64_t{mine} << 32U)) ^
                    (std::uint64_t{known.second} << 32U) ^ (std::uint64_t{kind} << 16U) ^ of_type);
  GpuCollective* row = row_of(key);
  if (row == nullptr) {
    region()->header.lost_collectives.fetch_add(1);
    return;
  }
  // Always the same values for the same key, so it does not matter which process is first, or is
  // killed here.
  row->communicator.store(known.size, std::memory_order_relaxed);
  row->ranks.store(known.first, std::memory_order_relaxed);
  row->rank.store(known.second, std::memory_order_relaxed);
  row->operation.store(kind, std::memory_order_relaxed);
  row->type.store(of_type, std::memory_order_relaxed);
  row->slot.store(mine, std::memory_order_relaxed);
  std::uint64_t bytes = elements * wire::nccl_type_size(of_type);
  if (message == Message::kOneRanks) bytes *= known.first;
  row->calls.fetch_add(1, std::memory_order_relaxed);
  row->bytes.fetch_add(bytes, std::memory_order_relaxed);
}

int joined(int result, void* const* communicator, std::uint64_t id, int ranks, int rank) {
  if (result == 0 || result == 7) {  // 7: in progress
    if (communicator != nullptr && *communicator != nullptr) {
      communicators.insert(key_of(*communicator), {id, static_cast<std::uint32_t>(ranks),
                                                   static_cast<std::uint32_t>(rank)});
    }
  }
  return result;
}

// A split of another communicator: all its ranks make the same splits in the same order, so their
// ids agree.
std::uint64_t id_of_part(void* parent, int color) {
  SizeMapValue known;
  communicators.find(key_of(parent), known);
  SizeMapValue made;
  parts.find(key_of(parent), made);
  ++made.size;
  parts.insert(key_of(parent), made);
  return wire::gpu_mix(wire::gpu_mix(known.size) ^ (made.size << 32U) ^
                       static_cast<std::uint32_t>(color));
}

void left(void* communicator) {
  SizeMapValue known;
  communicators.take(key_of(communicator), known);
  parts.take(key_of(communicator), known);
}

}  // namespace
}  // namespace assay::gpu

using assay::gpu::GpuOperation;
using assay::gpu::Message;
using assay::gpu::UniqueId;

#define ASSAY_NCCL(symbol)                                                        \
  if (!assay::gpu::nccl_ready()) return assay::gpu::kNcclInternalError;           \
  auto* const next = assay::gpu::real<decltype(symbol)>(assay_gpu_real_##symbol); \
  if (next == nullptr) return assay::gpu::kNcclInternalError

extern "C" {

#define ASSAY_COLLECTIVE(symbol, operation, message, parameters, arguments)                       \
  ASSAY_EXPORTED int symbol parameters {                                                          \
    ASSAY_NCCL(symbol);                                                                           \
    assay::gpu::collective(GpuOperation::operation, count, type, communicator, Message::message); \
    return next arguments;                                                                        \
  }
ASSAY_COLLECTIVE(ncclAllReduce, kAllReduce, kAllRanks,
                 (const void* from, void* to, std::size_t count, int type, int reduction,
                  void* communicator, void* stream),
                 (from, to, count, type, reduction, communicator, stream))
ASSAY_COLLECTIVE(ncclReduceScatter, kReduceScatter, kOneRanks,
                 (const void* from, void* to, std::size_t count, int type, int reduction,
                  void* communicator, void* stream),
                 (from, to, count, type, reduction, communicator, stream))
ASSAY_COLLECTIVE(ncclAllGather, kAllGather, kOneRanks,
                 (const void* from, void* to, std::size_t count, int type, void* communicator,
                  void* stream),
                 (from, to, count, type, communicator, stream))
ASSAY_COLLECTIVE(ncclAlltoAll, kAllToAll, kOneRanks,
                 (const void* from, void* to, std::size_t count, int type, void* communicator,
                  void* stream),
                 (from, to, count, type, communicator, stream))
ASSAY_COLLECTIVE(ncclBroadcast, kBroadcast, kAllRanks,
                 (const void* from, void* to, std::size_t count, int type, int root,
                  void* communicator, void* stream),
                 (from, to, count, type, root, communicator, stream))
ASSAY_COLLECTIVE(ncclBcast, kBroadcast, kAllRanks,
                 (void* buffer, std::size_t count, int type, int root, void* communicator,
                  void* stream),
                 (buffer, count, type, root, communicator, stream))
ASSAY_COLLECTIVE(ncclReduce, kReduce, kAllRanks,
                 (const void* from, void* to, std::size_t count, int type, int reduction, int root,
                  void* communicator, void* stream),
                 (from, to, count, type, reduction, root, communicator, stream))
ASSAY_COLLECTIVE(ncclGather, kGather, kOneRanks,
                 (const void* from, void* to, std::size_t count, int type, int root,
                  void* communicator, void* stream),
                 (from, to, count, type, root, communicator, stream))
ASSAY_COLLECTIVE(ncclScatter, kScatter, kOneRanks,
                 (const void* from, void* to, std::size_t count, int type, int root,
                  void* communicator, void* stream),
                 (from, to, count, type, root, communicator, stream))
ASSAY_COLLECTIVE(ncclSend, kSend, kAllRanks,
                 (const void* from, std::size_t count, int type, int peer, void* communicator,
                  void* stream),
                 (from, count, type, peer, communicator, stream))
ASSAY_COLLECTIVE(ncclRecv, kReceive, kAllRanks,
                 (void* to, std::size_t count, int type, int peer, void* communicator,
                  void* stream),
                 (to, count, type, peer, communicator, stream))
#undef ASSAY_COLLECTIVE

ASSAY_EXPORTED int ncclGroupStart() {
  ASSAY_NCCL(ncclGroupStart);
  assay::gpu::count(assay::gpu::GpuQuantity::kNcclGroup);
  return next();
}

ASSAY_EXPORTED int ncclCommInitRank(void** out, int ranks, UniqueId id, int rank) {
  ASSAY_NCCL(ncclCommInitRank);
  return assay::gpu::joined(next(out, ranks, id, rank), out, hash_of(id), ranks, rank);
}
ASSAY_EXPORTED int ncclCommInitRankConfig(void** out, int ranks, UniqueId id, int rank,
                                          void* config) {
  ASSAY_NCCL(ncclCommInitRankConfig);
  return assay::gpu::joined(next(out, ranks, id, rank, config), out, hash_of(id), ranks, rank);
}
ASSAY_EXPORTED int ncclCommInitRankScalable(void** out, int ranks, int rank, int ids,
                                            UniqueId* list, void* config) {
  ASSAY_NCCL(ncclCommInitRankScalable);
  const std::uint64_t id = list != nullptr && ids > 0 ? hash_of(*list) : 0;
  return assay::gpu::joined(next(out, ranks, rank, ids, list, config), out, id, ranks, rank);
}
ASSAY_EXPORTED int ncclCommInitAll(void** out, int devices, const int* list) {
  ASSAY_NCCL(ncclCommInitAll);
  const int result = next(out, devices, list);
  if (result != 0 || out == nullptr) return result;
  // Local to this process, so the process is part of its id.
  const std::uint64_t id = assay::wire::gpu_mix(
      assay::gpu::key_of(out[0]) ^ (static_cast<std::uint64_t>(assay::gpu::slot()) << 48U));
  for (int rank = 0; rank < devices; ++rank) {
    assay::gpu::joined(result, out + rank, id, devices, rank);
  }
  return result;
}
ASSAY_EXPORTED int ncclCommSplit(void* parent, int color, int key, void** out, void* config) {
  ASSAY_NCCL(ncclCommSplit);
  const std::uint64_t id = assay::gpu::id_of_part(parent, color);
  return assay::gpu::joined(next(parent, color, key, out, config), out, id, 0, 0);
}
ASSAY_EXPORTED int ncclCommShrink(void* parent, int* excluded, int number, void** out, void* config,
                                  int flags) {
  ASSAY_NCCL(ncclCommShrink);
  const std::uint64_t id = assay::gpu::id_of_part(parent, -1);
  return assay::gpu::joined(next(parent, excluded, number, out, config, flags), out, id, 0, 0);
}
ASSAY_EXPORTED int ncclCommDestroy(void* communicator) {
  ASSAY_NCCL(ncclCommDestroy);
  assay::gpu::left(communicator);
  return next(communicator);
}
ASSAY_EXPORTED int ncclCommAbort(void* communicator) {
  ASSAY_NCCL(ncclCommAbort);
  assay::gpu::left(communicator);
  return next(communicator);
}
}
#undef ASSAY_NCCL
