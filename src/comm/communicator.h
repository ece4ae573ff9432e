// Communicator: one rank's end of a group of ranks that do collectives together. A call is data, as
// the ops of a step are: ranks compare theirs before a byte moves, so what would be a hang or
// garbage is an error that names both.
//
// Memory is whatever the implementation works on: the host's here, a device's with a stream where
// GPUs talk to each other. Counts are elements, types and the meaning of "in place" are NCCL's, so
// that one can stand for the other.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace assay::comm {

enum class Dtype : std::uint8_t { kU8, kI32, kBf16, kF32, kF64 };
enum class Reduction : std::uint8_t { kSum, kMax };
enum class Collective : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kBarrier,
};

std::int64_t bytes_of(Dtype type);

// What the ranks of a group must agree on.
struct Call {
  Collective collective = Collective::kBarrier;
  std::int64_t count = 0;
  Dtype type = Dtype::kU8;
  Reduction reduction = Reduction::kSum;  // of kAllReduce and kReduceScatter
  int root = 0;                           // of kBroadcast

  [[nodiscard]] std::int64_t bytes() const { return count * bytes_of(type); }
  bool operator==(const Call&) const = default;
};
// "all_reduce of 8 f32, sum"
std::string to_text(const Call& call);

// What a device queues work on; nothing for memory of the host.
struct Stream {
  void* handle = nullptr;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  // All of these are called by every rank, in the same order. On a host they return when the result
  // is there and `in` may be written again; on a device when both are queued on the stream.

  // out[i] = in[i] of all ranks, reduced. In place: out == in.
  base::Result<void> all_reduce(const void* in, void* out, std::int64_t count, Dtype type,
                                Reduction reduction, Stream stream = {}) {
    return run({Collective::kAllReduce, count, type, reduction}, in, out, stream);
  }
  // Every rank brings `count` elements for each rank, and takes its own, reduced. In place:
  // out == in + rank * count.
  base::Result<void> reduce_scatter(const void* in, void* out, std::int64_t count, Dtype type,
                                    Reduction reduction, Stream stream = {}) {
    return run({Collective::kReduceScatter, count, type, reduction}, in, out, stream);
  }
  // The `count` elements of every rank, by rank. In place: in == out + rank * count.
  base::Result<void> all_gather(const void* in, void* out, std::int64_t count, Dtype type,
                                Stream stream = {}) {
    return run({Collective::kAllGather, count, type}, in, out, stream);
  }
  // The root's elements, to all.
  base::Result<void> broadcast(void* data, std::int64_t count, Dtype type, int root,
                               Stream stream = {}) {
    return run({Collective::kBroadcast, count, type, Reduction::kSum, root}, data, data, stream);
  }
  // Every rank brings `count` elements for each rank and takes as many from each. Not in place.
  base::Result<void> all_to_all(const void* in, void* out, std::int64_t count, Dtype type,
                                Stream stream = {}) {
    return run({Collective::kAllToAll, count, type}, in, out, stream);
  }
  base::Result<void> barrier() { return run({}, nullptr, nullptr, {}); }

  // For a rank that cannot go on: the calls of all ranks, waiting or to come, fail with the reason.
  virtual void abort(const base::Error& why) = 0;

 protected:
  virtual base::Result<void> run(const Call& call, const void* in, void* out, Stream stream) = 0;
};

}  // namespace assay::comm
