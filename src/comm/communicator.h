// Communicator: one rank's handle on a group of ranks that exchange memory. Issuing a call and
// waiting for it are separate, so that a rank can compute in between and have many calls in flight;
// the blocking forms do both. A call is data (struct Call), so implementations can compare the
// ranks' calls and turn what would be a hang or garbage into an error that names both.
//
// Communicators only move bytes; they never reduce. Which memory is meant depends on the
// implementation: host memory for ranks on CPUs, device memory with a stream for GPUs. Counts are
// in elements; types and the meaning of "in place" are NCCL's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::comm {

enum class ElementType : std::uint8_t { kU8, kI32, kBf16, kF32, kF64 };
enum class CommKind : std::uint8_t {
  kAllGather,
  kBroadcast,
  kAllToAll,
  kBarrier,
  kAllToAllV,  // counts and offsets per peer, in AllToAllParts
  kSend,
  kReceive,
};

std::int64_t bytes_of(ElementType type);

// The part of a call that all ranks of the group must agree on. A send and its receive must agree
// on count and type, and name each other as peers.
struct Call {
  CommKind kind = CommKind::kBarrier;
  std::int64_t count = 0;  // per rank; 0 for kAllToAllV
  ElementType type = ElementType::kU8;
  int root = 0;  // for kBroadcast
  int peer = 0;  // for kSend and kReceive

  [[nodiscard]] std::int64_t bytes() const { return count * bytes_of(type); }
  bool operator==(const Call&) const = default;
};
// "all_gather of 8 f32"
std::string to_text(const Call& call);

// Counts and offsets for kAllToAllV: one entry per rank, in elements. They are read while the call
// is issued and not needed afterwards. With `on_device` the arrays lie in device memory and are
// read when the stream reaches the call; implementations for host memory refuse that.
struct AllToAllParts {
  std::span<const std::int64_t> send_counts;
  std::span<const std::int64_t> send_offsets;
  std::span<const std::int64_t> receive_counts;
  std::span<const std::int64_t> receive_offsets;
  bool on_device = false;
};

// The stream to which work on device memory is issued; null for host memory.
struct Stream {
  void* handle = nullptr;
};

// A call in flight. Must be waited for exactly once.
struct Ticket {
  std::uint64_t id = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  // Starts a call; never blocks. All ranks of a group must issue its calls in the same order (sends
  // and receives: the two ranks, among those between them); calls of different groups may be issued
  // in different orders on different ranks. The buffers belong to the call until it has been waited
  // for, or the communicator has been aborted or destroyed. Only one thread may use a communicator
  // at a time; other threads may use other groups meanwhile.
  base::Result<Ticket> issue(const Call& call, const void* in, void* out, Stream stream = {},
                             const AllToAllParts& parts = {});
  // Host memory: returns when the result is complete and the buffers may be reused. Device memory:
  // makes the stream to which the call was issued wait, not the caller. Tickets may be waited for
  // in any order. Bounded by the communicator's timeout. An error is permanent: the group has
  // failed, and none of its calls touches memory any more.
  virtual base::Result<void> wait(Ticket ticket) = 0;

  // Concatenates the `count` elements of every rank, in rank order. In place: in == out + rank *
  // count.
  base::Result<void> all_gather(const void* in, void* out, std::int64_t count, ElementType type,
                                Stream stream = {}) {
    return run({CommKind::kAllGather, count, type}, in, out, stream);
  }
  // Sends `count` elements to each rank and receives as many from each. Not in place.
  base::Result<void> all_to_all(const void* in, void* out, std::int64_t count, ElementType type,
                                Stream stream = {}) {
    return run({CommKind::kAllToAll, count, type}, in, out, stream);
  }
  // Copies the root's elements to all ranks.
  base::Result<void> broadcast(void* data, std::int64_t count, ElementType type, int root,
                               Stream stream = {}) {
    return run({CommKind::kBroadcast, count, type, root}, data, data, stream);
  }
  base::Result<void> send(const void* in, std::int64_t count, ElementType type, int peer,
                          Stream stream = {}) {
    return run({CommKind::kSend, count, type, 0, peer}, in, nullptr, stream);
  }
  base::Result<void> receive(void* out, std::int64_t count, ElementType type, int peer,
                             Stream stream = {}) {
    return run({CommKind::kReceive, count, type, 0, peer}, nullptr, out, stream);
  }
  base::Result<void> barrier() { return run({}, nullptr, nullptr, {}); }

  // Collective: ranks with the same color form a group, ordered by key, then by rank in this group.
  // Null for a rank whose color is negative. A new group fails together with the group it was split
  // from. Must not be called by two threads of a process at once, even on different groups.
  virtual base::Result<std::unique_ptr<Communicator>> split(int color, int key);

  // Collective: announces that this rank will send to and receive from the previous and the next
  // rank (cyclically). Where a transport executes a group's calls one after the other, these sends
  // and receives get separate connections, so that they wait for nothing else. Without this
  // call, and for other peers, sends and receives on such a transport must be issued in the same
  // order on all ranks, like collectives.
  virtual base::Result<void> connect_neighbours() { return {}; }

  // Device memory: whether all calls that the caller's stream has waited for succeeded. Call it
  // after the host has synchronised with the stream, which also returns if the group fails
  // meanwhile.
  virtual base::Result<void> check() { return {}; }

  // Called by a rank that cannot continue: fails all current and future calls of all ranks in this
  // group and in the groups split from it. May be called from any thread.
  virtual void abort(const base::Error& why) = 0;

  // Small values that all ranks must agree on before they act. Host memory only.
  base::Result<std::int64_t> broadcast_value(std::int64_t value, int root = 0);
  base::Result<bool> any_rank(bool condition);

 protected:
  // Issues a call that has been checked.
  virtual base::Result<Ticket> start(const Call& call, const void* in, void* out,
                                     const AllToAllParts& parts, Stream stream) = 0;
  // Creates a group of these ranks of this group, including this rank. `id` is the same on all
  // members, and unique among all groups that any two ranks of this group have in common.
  virtual base::Result<std::unique_ptr<Communicator>> subgroup(const std::vector<int>& members,
                                                               std::int64_t id) = 0;
  // The first group id that this rank has not used yet, and the one after a split.
  [[nodiscard]] virtual std::int64_t next_group_id() const = 0;
  virtual void set_next_group_id(std::int64_t id) = 0;

 private:
  base::Result<void> run(const Call& call, const void* in, void* out, Stream stream) {
    ASSAY_TRY(const Ticket ticket, issue(call, in, out, stream));
    return wait(ticket);
  }
};

}  // namespace assay::comm
