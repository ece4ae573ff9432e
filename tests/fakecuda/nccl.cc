// A libnccl.so.2 without GPUs: communicators have ranks, collectives are counted and move
// nothing.
#include <atomic>
#include <cstddef>
#include <cstring>

namespace {

struct UniqueId {
  char bytes[128];
};
struct Communicator {
  int ranks;
  int rank;
};

std::atomic<unsigned long> calls{0};
std::atomic<unsigned long> ids{0};

int make(void** out, int ranks, int rank) {
  *out = new Communicator{ranks, rank};
  return 0;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
int ncclGetUniqueId(UniqueId* id) {
  std::memset(id, 7, sizeof *id);
  const unsigned long number = ids.fetch_add(1);
  std::memcpy(id, &number, sizeof number);
  return 0;
}
int ncclCommInitRank(void** out, int ranks, UniqueId, int rank) {
  return make(out, ranks, rank);
}
int ncclCommInitRankConfig(void** out, int ranks, UniqueId, int rank, void*) {
  return make(out, ranks, rank);
}
int ncclCommInitRankScalable(void** out, int ranks, int rank, int, UniqueId*, void*) {
  return make(out, ranks, rank);
}
int ncclCommInitAll(void** out, int devices, const int*) {
  for (int i = 0; i < devices; ++i) make(out + i, devices, i);
  return 0;
}
// Halves: two colours.
int ncclCommSplit(void* parent, int, int key, void** out, void*) {
  return make(out, static_cast<Communicator*>(parent)->ranks / 2, key);
}
int ncclCommShrink(void* parent, int*, int excluded, void** out, void*, int) {
  auto* from = static_cast<Communicator*>(parent);
  return make(out, from->ranks - excluded, from->rank);
}
int ncclCommDestroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  return 0;
}
int ncclCommAbort(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  return 0;
}
int ncclCommFinalize(void*) {
  return 0;
}
int ncclCommCount(void* communicator, int* ranks) {
  *ranks = static_cast<Communicator*>(communicator)->ranks;
  return 0;
}
int ncclCommUserRank(void* communicator, int* rank) {
  *rank = static_cast<Communicator*>(communicator)->rank;
  return 0;
}
int ncclCommCuDevice(void*, int* device) {
  *device = 0;
  return 0;
}
int ncclGroupStart() {
  return 0;
}
int ncclGroupEnd() {
  return 0;
}

#define COLLECTIVE(symbol) \
  int symbol() {           \
    calls.fetch_add(1);    \
    return 0;              \
  }
COLLECTIVE(ncclAllReduce)
COLLECTIVE(ncclReduceScatter)
COLLECTIVE(ncclAllGather)
COLLECTIVE(ncclAlltoAll)
COLLECTIVE(ncclBroadcast)
COLLECTIVE(ncclBcast)
COLLECTIVE(ncclReduce)
COLLECTIVE(ncclGather)
COLLECTIVE(ncclScatter)
COLLECTIVE(ncclSend)
COLLECTIVE(ncclRecv)

unsigned long fakenccl_calls() {
  return calls.load();
}
}
