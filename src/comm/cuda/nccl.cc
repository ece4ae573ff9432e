#include "comm/cuda/nccl.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "comm/cuda/nccl_queue.h"
#include "comm/transfers.h"

namespace assay::comm {
namespace {

constexpr char kIdKey[] = "nccl/0";

ncclDataType_t nccl_type(ElementType type) {
  constexpr std::array kTypes = {ncclUint8, ncclInt32, ncclBfloat16, ncclFloat32, ncclFloat64};
  return kTypes[static_cast<std::size_t>(type)];
}

// Sends and receives do not block each other, because the queue puts them into one NCCL group.
ncclResult_t exchange(const NcclLibrary& nccl, const Transfers& transfers, ElementType type,
                      ncclComm_t comm, cudaStream_t stream) {
  const auto element = static_cast<std::size_t>(bytes_of(type));
  ncclResult_t result = ncclSuccess;
  const auto did = [&](ncclResult_t one) {
    if (result == ncclSuccess || result == ncclInProgress) result = one;
  };
  for (const Outgoing& segment : transfers.out) {
    if (segment.bytes == 0) continue;
    did(nccl.send(segment.data, segment.bytes / element, nccl_type(type), segment.peer, comm,
                  stream));
  }
  for (const Incoming& segment : transfers.in) {
    if (segment.bytes == 0) continue;
    did(nccl.receive(segment.data, segment.bytes / element, nccl_type(type), segment.peer, comm,
                     stream));
  }
  return result;
}

// Device memory for the first exchanges, before the caller has any.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) {
    if (cudaMalloc(&data_, bytes) != cudaSuccess) {
      data_ = nullptr;
      cudaGetLastError();
    }
  }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  [[nodiscard]] std::byte* get() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

class NcclRank : public Communicator {
 public:
  NcclRank(std::shared_ptr<NcclJob> job, std::unique_ptr<NcclQueue> group)
      : job_(std::move(job)),
        barrier_(2 * static_cast<std::size_t>(group->ranks())),
        group_(std::move(group)) {}

  [[nodiscard]] int rank() const override { return group_->rank(); }
  [[nodiscard]] int ranks() const override { return group_->ranks(); }
  void abort(const base::Error& why) override { job_->fail(why); }

  base::Result<void> check() override {
    if (auto failure = job_->failure()) return ended<void>(base::fail(*std::move(failure)));
    return {};
  }

  base::Result<void> wait(Ticket ticket) override {
    const auto found = open_.find(ticket.id);
    if (found == open_.end()) {
      return base::fail(base::usage_error(name(), "waits for a call that is not in flight"));
    }
    const Open open = found->second;
    open_.erase(found);
    return ended(open.queue->wait(open.number, open.stream));
  }

  base::Result<std::unique_ptr<Communicator>> split(int color, int key) override {
    ASSAY_TRY(auto queue, ended(group_->split(color, key, NcclUse::kCollectives)));
    if (!queue) return nullptr;
    auto made = std::make_unique<NcclRank>(job_, std::move(queue));
    ASSAY_TRY_VOID(made->warm_up());
    return std::unique_ptr<Communicator>(std::move(made));
  }

  // One queue per direction between neighbours. Splits are collective, and each rank can be in only
  // one pair per split.
  base::Result<void> connect_neighbours() override {
    if (neighbours_.to_next || ranks() == 1) return {};
    const int all = ranks();
    const int next = (rank() + 1) % all;
    const int before = (rank() + all - 1) % all;
    for (const bool forward : {true, false}) {
      if (all == 2 && !forward) break;  // the next rank is also the previous one
      for (int turn = 0; turn < (all % 2 == 0 ? 2 : 3); ++turn) {
        // A pair is identified by its first rank.
        const auto is_due = [&](int first) {
          return (all % 2 == 1 && first == all - 1 ? 2 : first % 2) == turn;
        };
        const bool with_next = is_due(rank());
        const bool with_before = is_due(before);
        const int color = with_next ? rank() : with_before ? before : -1;
        const bool sends = with_next == forward;
        ASSAY_TRY(std::shared_ptr<NcclQueue> pair,
                  ended(group_->split(color, sends ? 0 : 1, NcclUse::kOnePair)));
        if (!pair) continue;
        ASSAY_TRY_VOID(connect_pair(*pair));
        const int other = with_next ? next : before;
        (sends ? (other == next ? neighbours_.to_next : neighbours_.to_before)
               : (other == next ? neighbours_.from_next : neighbours_.from_before)) = pair;
      }
    }
    return {};
  }

  // Makes NCCL establish connections and allocate memory as training will need them, before the
  // rest of the device's memory is used. NCCL chooses its algorithms by size.
  base::Result<void> warm_up() {
    if (barrier_.get() == nullptr) {
      return base::fail(job_->fail(job_->error("not enough GPU memory for a communicator")));
    }
    const auto all = static_cast<std::size_t>(ranks());
    const std::size_t large = static_cast<std::size_t>(job_->options().first_bytes) / all;
    const DeviceMemory memory(all * (large + 4));
    std::byte* const at = memory.get();
    if (at == nullptr) {
      return base::fail(job_->fail(job_->error("not enough GPU memory for a communicator")));
    }
    for (const std::size_t bytes : {std::size_t{4}, large}) {
      if (bytes == 0) continue;
      ASSAY_TRY_VOID(ended(group_->launch(
          "the first all_gather", nullptr, [&](ncclComm_t comm, cudaStream_t stream) {
            return job_->nccl().all_gather(at + static_cast<std::size_t>(rank()) * bytes, at, bytes,
                                           ncclUint8, comm, stream);
          })));
    }
    const Call call = {CommKind::kAllToAll, 1, ElementType::kU8};
    ASSAY_TRY(const Transfers transfers,
              transfers_of(call, rank(), ranks(), barrier_.get(), barrier_.get() + all, {}));
    ASSAY_TRY_VOID(ended(
        group_->launch("the first all_to_all", nullptr, [&](ncclComm_t comm, cudaStream_t stream) {
          return exchange(job_->nccl(), transfers, call.type, comm, stream);
        })));
    return ended(group_->drain());
  }

 protected:
  base::Result<Ticket> start(const Call& call, const void* in, void* out,
                             const AllToAllParts& parts, Stream stream) override {
    if (parts.on_device) {
      return base::fail(base::usage_error(
          to_text(call), "has its counts in device memory, but NCCL needs them on the host",
          "copy them first"));
    }
    const auto from = static_cast<cudaStream_t>(stream.handle);
    const Route route = route_of(call);
    ASSAY_TRY(const std::uint64_t number, ended(launched(call, route, in, out, parts, from)));
    open_[++last_ticket_] = {route.queue, number, from};
    return Ticket{last_ticket_};
  }
  base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>&,
                                                       std::int64_t) override {
    return base::fail(base::usage_error(name(), "groups are made by split"));
  }
  [[nodiscard]] std::int64_t next_group_id() const override { return 0; }  // split() has its own
  void set_next_group_id(std::int64_t) override {}

 private:
  struct Open {
    NcclQueue* queue = nullptr;
    std::uint64_t number = 0;
    cudaStream_t stream = nullptr;
  };
  // The queue that executes a call, and the peer's rank in that queue.
  struct Route {
    NcclQueue* queue = nullptr;
    int peer = 0;
  };
  struct Neighbours {
    std::shared_ptr<NcclQueue> to_next, to_before, from_next, from_before;
  };

  // Returns errors only when the caller's memory is no longer used.
  template <class T>
  base::Result<T> ended(base::Result<T> result) const {
    if (!result && job_->failure()) job_->wait_for_aborts();
    return result;
  }
  [[nodiscard]] std::string name() const { return fmt::format("rank {}", job_->options().rank); }

  // In a pair, the sender is 0 and the receiver 1.
  [[nodiscard]] Route route_of(const Call& call) const {
    const bool sends = call.kind == CommKind::kSend;
    if (!sends && call.kind != CommKind::kReceive) return {group_.get()};
    const bool is_next = call.peer == (rank() + 1) % ranks();
    const bool is_before = call.peer == (rank() + ranks() - 1) % ranks();
    const auto& [to_next, to_before, from_next, from_before] = neighbours_;
    if (is_next && sends && to_next) return {to_next.get(), 1};
    if (is_before && sends && to_before) return {to_before.get(), 1};
    if (is_before && !sends && from_before) return {from_before.get(), 0};
    if (is_next && !sends && from_next) return {from_next.get(), 0};
    return {group_.get(), call.peer};
  }

  base::Result<std::uint64_t> launched(const Call& call, const Route& route, const void* in,
                                       void* out, const AllToAllParts& parts, cudaStream_t from) {
    const NcclLibrary& nccl = job_->nccl();
    const auto count = static_cast<std::size_t>(call.count);
    switch (call.kind) {
      case CommKind::kAllGather:
        return route.queue->launch(to_text(call), from, [&](ncclComm_t comm, cudaStream_t stream) {
          return nccl.all_gather(in, out, count, nccl_type(call.type), comm, stream);
        });
      case CommKind::kBroadcast:
        return route.queue->launch(to_text(call), from, [&](ncclComm_t comm, cudaStream_t stream) {
          return nccl.broadcast(in, out, count, nccl_type(call.type), call.root, comm, stream);
        });
      case CommKind::kBarrier:
        return route.queue->launch(to_text(call), from, [&](ncclComm_t comm, cudaStream_t stream) {
          return nccl.all_gather(barrier_.get() + ranks(), barrier_.get(), 1, ncclUint8, comm,
                                 stream);
        });
      default:
        break;
    }
    ASSAY_TRY(Transfers transfers, transfers_of(call, rank(), ranks(), in, out, parts));
    if (call.kind == CommKind::kSend || call.kind == CommKind::kReceive) {
      for (Outgoing& segment : transfers.out) segment.peer = route.peer;
      for (Incoming& segment : transfers.in) segment.peer = route.peer;
    }
    return route.queue->launch(
        to_text(call), from,
        [&](ncclComm_t comm, cudaStream_t stream) {
          return exchange(nccl, transfers, call.type, comm, stream);
        },
        &transfers);
  }

  // Connects the pair before training waits for it.
  base::Result<void> connect_pair(NcclQueue& pair) {
    ASSAY_TRY_VOID(
        pair.launch("the first send", nullptr, [&](ncclComm_t comm, cudaStream_t stream) {
          const NcclLibrary& nccl = job_->nccl();
          return pair.rank() == 0 ? nccl.send(barrier_.get(), 1, ncclUint8, 1, comm, stream)
                                  : nccl.receive(barrier_.get(), 1, ncclUint8, 0, comm, stream);
        }));
    return ended(pair.drain());
  }

  std::shared_ptr<NcclJob> job_;
  DeviceMemory barrier_;  // two bytes per rank, whose contents do not matter
  std::unique_ptr<NcclQueue> group_;
  Neighbours neighbours_;
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, Open> open_;
};

base::Result<ncclUniqueId> agreed_id(const NcclLibrary& nccl, const NcclOptions& options,
                                     KeyValue& store) {
  ncclUniqueId id{};
  if (options.rank == 0) {
    if (const ncclResult_t made = nccl.get_unique_id(&id); made != ncclSuccess) {
      return base::fail(base::unfit_error("NCCL", nccl.why(made)));
    }
    ASSAY_TRY_VOID(store.put(kIdKey, std::string(id.internal, sizeof id.internal)));
    return id;
  }
  ASSAY_TRY(const std::string bytes, store.get(kIdKey, options.connect_timeout));
  if (bytes.size() != sizeof id.internal) {
    return base::fail(base::failed_error("rank 0", "has not sent an NCCL id"));
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

}  // namespace

base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclOptions& options,
                                                         KeyValue& store) {
  ASSAY_TRY(const NcclLibrary* const nccl, NcclLibrary::find());
  return connect_nccl(*nccl, options, store);
}

base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclLibrary& nccl,
                                                         const NcclOptions& options,
                                                         KeyValue& store) {
  ASSAY_TRY_VOID(cuda_done(cudaSetDevice(options.device), "choosing the GPU"));
  ASSAY_TRY(const ncclUniqueId id, agreed_id(nccl, options, store));
  auto job = std::make_shared<NcclJob>(nccl, options);
  ASSAY_TRY(auto queue, NcclQueue::connect(job, id));
  auto world = std::make_unique<NcclRank>(std::move(job), std::move(queue));
  ASSAY_TRY_VOID(world->warm_up());
  return std::unique_ptr<Communicator>(std::move(world));
}

}  // namespace assay::comm
