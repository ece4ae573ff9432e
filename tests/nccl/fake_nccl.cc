#include "nccl/fake_nccl.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "nccl/fake_cuda.h"

namespace assay::fakenccl {

struct Segment {
  const char* data = nullptr;
  std::size_t bytes = 0;
  bool taken = false;
};
// What the ranks of a communicator share.
struct Shared {
  int ranks = 0;
  // By sender, receiver and number.
  std::map<std::tuple<int, int, std::uint64_t>, Segment> posted;
  std::map<std::pair<int, int>, std::uint64_t> sent, received;
  // By number of the split: color and key of each rank, and the groups that come of it.
  std::map<int, std::map<int, std::pair<int, int>>> splits;
  std::map<std::pair<int, int>, std::shared_ptr<Shared>> groups;
  std::set<int> joined;
};

namespace {

// One lock for everything: it is a fake.
std::mutex mutex;
std::condition_variable changed;

[[noreturn]] void broken(const char* rule) {
  std::fprintf(stderr, "fake NCCL: %s\n", rule);
  std::abort();
}

std::map<std::string, std::shared_ptr<Shared>> worlds;
std::set<ncclComm*> communicators;
std::atomic<bool> finalize_hangs = false;
std::atomic<bool> connects_never = false;
std::atomic<int> aborts = 0;
std::map<int, ncclResult_t> errors;
std::map<int, nccl_testing::Moved> asked;

}  // namespace
}  // namespace assay::fakenccl

struct ncclComm {
  std::shared_ptr<assay::fakenccl::Shared> shared;
  int rank = 0;
  int first_rank = 0;  // in the first group
  int device = 0;
  int splits = 0;
  ncclResult_t state = ncclInProgress;
  bool aborted = false;
  bool finalized = false;
  int working = 0;  // threads and kernels
  std::atomic<int> inside = 0;
};

namespace assay::fakenccl {
namespace {

struct Op {
  bool sends = false;
  int peer = 0;
  const char* from = nullptr;
  char* to = nullptr;
  std::size_t bytes = 0;
};
struct Group {
  int depth = 0;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Op> ops;
  std::vector<std::tuple<char*, const char*, std::size_t>> copies;
};
thread_local Group group;

// One thread at a time.
class Inside {
 public:
  explicit Inside(ncclComm* comm) : comm_(comm) {
    const std::lock_guard lock(mutex);
    if (!communicators.contains(comm)) broken("a communicator is used that is gone");
    if (comm->inside.fetch_add(1) > 0) broken("two threads use a communicator");
  }
  ~Inside() { --comm_->inside; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  ncclComm* comm_;
};

void run_in_background(ncclComm* comm, const std::function<void()>& work) {
  {
    const std::lock_guard lock(mutex);
    comm->state = ncclInProgress;
    ++comm->working;
  }
  std::thread([comm, work] {
    std::this_thread::sleep_for(std::chrono::microseconds(std::rand() % 300));
    work();
    const std::lock_guard lock(mutex);
    --comm->working;
    changed.notify_all();
  }).detach();
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclBfloat16:
      return 2;
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

// A kernel: posts all that is sent, takes all that is received, waits until what it sent is taken.
void exchange(ncclComm* comm, const std::vector<Op>& ops) {
  std::unique_lock lock(mutex);
  Shared& shared = *comm->shared;
  std::vector<std::tuple<int, int, std::uint64_t>> own;
  for (const Op& op : ops) {
    if (!op.sends) continue;
    const std::uint64_t number = shared.sent[{comm->rank, op.peer}]++;
    own.emplace_back(comm->rank, op.peer, number);
    shared.posted[own.back()] = {op.from, op.bytes};
  }
  changed.notify_all();
  for (const Op& op : ops) {
    if (op.sends) continue;
    const std::tuple key = {op.peer, comm->rank, shared.received[{op.peer, comm->rank}]++};
    changed.wait(lock, [&] { return comm->aborted || shared.posted.contains(key); });
    if (comm->aborted) return;
    Segment& segment = shared.posted[key];
    if (segment.bytes != op.bytes) broken("a message has another size than its receiver expects");
    std::memcpy(op.to, segment.data, op.bytes);
    segment.taken = true;
    changed.notify_all();
  }
  for (const auto& key : own) {
    changed.wait(lock, [&] { return comm->aborted || shared.posted[key].taken; });
    if (comm->aborted) return;
    shared.posted.erase(key);
  }
}

ncclResult_t version(int* number) {
  *number = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t unique_id(ncclUniqueId* id) {
  static std::atomic<int> next = 0;
  std::snprintf(id->internal, sizeof id->internal, "world %d", ++next);
  return ncclSuccess;
}

ncclComm* make(std::shared_ptr<Shared> shared, int rank, int first_rank) {
  auto* comm = new ncclComm;
  comm->shared = std::move(shared);
  comm->rank = rank;
  comm->first_rank = first_rank;
  comm->device = fakecuda::current_device();
  communicators.insert(comm);
  return comm;
}

ncclResult_t init_rank(ncclComm** out, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) broken("a communicator blocks");
  ncclComm* comm = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto& shared = worlds[id.internal];
    if (!shared) shared = std::make_shared<Shared>();
    shared->ranks = ranks;
    comm = make(shared, rank, rank);
  }
  *out = comm;
  run_in_background(comm, [comm] {
    std::unique_lock lock(mutex);
    comm->shared->joined.insert(comm->rank);
    changed.notify_all();
    changed.wait(lock, [&] {
      return comm->aborted ||
             (!connects_never &&
              comm->shared->joined.size() == static_cast<std::size_t>(comm->shared->ranks));
    });
    comm->state = comm->aborted ? ncclInternalError : ncclSuccess;
  });
  return ncclInProgress;
}

ncclResult_t split(ncclComm* comm, int color, int key, ncclComm** out, ncclConfig_t*) {
  const Inside inside(comm);
  if (comm->state != ncclSuccess) broken("a communicator is split that is not ready");
  *out = nullptr;
  const int number = comm->splits++;
  const int device = fakecuda::current_device();
  run_in_background(comm, [=] {
    cudaSetDevice(device);
    std::unique_lock lock(mutex);
    Shared& shared = *comm->shared;
    auto& chosen = shared.splits[number];
    chosen[comm->rank] = {color, key};
    changed.notify_all();
    changed.wait(lock, [&] {
      return comm->aborted || chosen.size() == static_cast<std::size_t>(shared.ranks);
    });
    comm->state = comm->aborted ? ncclInternalError : ncclSuccess;
    if (comm->aborted || color < 0) return;
    std::vector<std::pair<int, int>> members;  // key and rank
    for (const auto& [rank, choice] : chosen) {
      if (choice.first == color) members.emplace_back(choice.second, rank);
    }
    std::sort(members.begin(), members.end());
    auto& made = shared.groups[{number, color}];
    if (!made) {  // by the first of its ranks: others may use it already
      made = std::make_shared<Shared>();
      made->ranks = static_cast<int>(members.size());
    }
    const auto place = std::find(members.begin(), members.end(), std::pair(key, comm->rank));
    *out = make(made, static_cast<int>(place - members.begin()), comm->first_rank);
    (*out)->state = ncclSuccess;
  });
  return ncclInProgress;
}

ncclResult_t async_error(ncclComm* comm, ncclResult_t* state) {
  const Inside inside(comm);
  const std::lock_guard lock(mutex);
  *state = comm->state;
  if (errors.contains(comm->first_rank)) *state = errors[comm->first_rank];
  return ncclSuccess;
}

// Frees memory, which waits for the whole device.
void free_communicator(ncclComm* comm) {
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return comm->working == 0; });
  }
  fakecuda::wait_for_device(comm->device);
  const std::lock_guard lock(mutex);
  communicators.erase(comm);
  delete comm;
}

ncclResult_t finalize(ncclComm* comm) {
  const Inside inside(comm);
  if (comm->state != ncclSuccess) return ncclInvalidArgument;
  comm->finalized = true;
  run_in_background(comm, [comm] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return comm->aborted || !finalize_hangs; });
    comm->state = ncclSuccess;
  });
  return ncclInProgress;
}
ncclResult_t destroy(ncclComm* comm) {
  {
    const Inside inside(comm);
    if (!comm->finalized || comm->state != ncclSuccess) broken("destroyed without an end");
  }
  free_communicator(comm);
  return ncclSuccess;
}
ncclResult_t abort(ncclComm* comm) {
  ++aborts;
  {
    const std::lock_guard lock(mutex);
    if (!communicators.contains(comm)) broken("a communicator is aborted that is gone");
    comm->aborted = true;
    changed.notify_all();
  }
  free_communicator(comm);
  return ncclSuccess;
}
ncclResult_t count(ncclComm* const comm, int* number) {
  const Inside inside(comm);
  *number = comm->shared->ranks;
  return ncclSuccess;
}
ncclResult_t user_rank(ncclComm* const comm, int* rank) {
  const Inside inside(comm);
  *rank = comm->rank;
  return ncclSuccess;
}
const char* error_text(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "something else";
}
const char* last_error(ncclComm*) {
  return "";
}

ncclResult_t group_start() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t group_end() {
  if (--group.depth > 0 || group.comm == nullptr) return ncclSuccess;
  ncclComm* const comm = group.comm;
  run_in_background(comm, [comm, done = group] {
    fakecuda::enqueue(done.stream, [comm, done] {
      for (const auto& [to, from, bytes] : done.copies) std::memmove(to, from, bytes);
      exchange(comm, done.ops);
    });
    const std::lock_guard lock(mutex);
    comm->state = ncclSuccess;
  });
  group = {};
  return ncclInProgress;
}

bool begin_op(ncclComm* comm, cudaStream_t stream) {
  if (group.depth == 0) broken("a call outside of a group");
  if (group.comm != nullptr && group.comm != comm) broken("two communicators in a group");
  const Inside inside(comm);
  const std::lock_guard lock(mutex);
  if (comm->state != ncclSuccess) broken("a communicator is used that is not ready");
  group.comm = comm;
  group.stream = stream;
  return true;
}

void count_call(ncclComm* comm, wire::GpuOperation operation, ncclDataType_t type,
                std::size_t bytes) {
  const std::lock_guard lock(mutex);
  nccl_testing::Amount& amount = asked[comm->first_rank][{operation, type}];
  ++amount.calls;
  amount.bytes += bytes;
}

void add_send(const void* from, std::size_t bytes, int peer) {
  group.ops.push_back({true, peer, static_cast<const char*>(from), nullptr, bytes});
}
void add_receive(void* to, std::size_t bytes, int peer) {
  group.ops.push_back({false, peer, nullptr, static_cast<char*>(to), bytes});
}

ncclResult_t send(const void* from, std::size_t elements, ncclDataType_t type, int peer,
                  ncclComm* comm, cudaStream_t stream) {
  begin_op(comm, stream);
  count_call(comm, wire::GpuOperation::kSend, type, elements * bytes_of(type));
  add_send(from, elements * bytes_of(type), peer);
  return ncclSuccess;
}
ncclResult_t receive(void* to, std::size_t elements, ncclDataType_t type, int peer, ncclComm* comm,
                     cudaStream_t stream) {
  begin_op(comm, stream);
  count_call(comm, wire::GpuOperation::kReceive, type, elements * bytes_of(type));
  add_receive(to, elements * bytes_of(type), peer);
  return ncclSuccess;
}
ncclResult_t all_gather(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                        ncclComm* comm, cudaStream_t stream) {
  const std::size_t bytes = elements * bytes_of(type);
  const int ranks = comm->shared->ranks;
  begin_op(comm, stream);
  count_call(comm, wire::GpuOperation::kAllGather, type, bytes * static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    char* const part = static_cast<char*>(to) + static_cast<std::size_t>(rank) * bytes;
    if (rank == comm->rank) {
      group.copies.emplace_back(part, static_cast<const char*>(from), bytes);
      continue;
    }
    add_send(from, bytes, rank);
    add_receive(part, bytes, rank);
  }
  return ncclSuccess;
}
ncclResult_t broadcast(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                       int root, ncclComm* comm, cudaStream_t stream) {
  const std::size_t bytes = elements * bytes_of(type);
  begin_op(comm, stream);
  count_call(comm, wire::GpuOperation::kBroadcast, type, bytes);
  if (comm->rank != root) {
    add_receive(to, bytes, root);
    return ncclSuccess;
  }
  group.copies.emplace_back(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  for (int rank = 0; rank < comm->shared->ranks; ++rank) {
    if (rank != root) add_send(from, bytes, rank);
  }
  return ncclSuccess;
}

}  // namespace

comm::NcclLibrary library() {
  return {version,     unique_id,   init_rank,  split,     finalize,   destroy,
          abort,       async_error, count,      user_rank, error_text, last_error,
          group_start, group_end,   all_gather, broadcast, send,       receive};
}

void hang_in_finalize(bool on) {
  finalize_hangs = on;
  const std::lock_guard lock(mutex);
  changed.notify_all();
}
void never_connect(bool on) {
  connects_never = on;
}
void set_error(int rank, ncclResult_t state) {
  const std::lock_guard lock(mutex);
  errors[rank] = state;
}
nccl_testing::Moved counted(int rank) {
  const std::lock_guard lock(mutex);
  return asked[rank];
}
int communicators_left() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(communicators.size());
}
int aborted() {
  return aborts;
}
void reset() {
  finalize_hangs = false;
  connects_never = false;
  aborts = 0;
  const std::lock_guard lock(mutex);
  errors.clear();
  asked.clear();
}

}  // namespace assay::fakenccl
