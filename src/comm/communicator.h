// Communicator: one rank's handle on a group of ranks that run collectives together. A call is data
// (struct Call), so implementations can compare the ranks' calls before any byte moves and turn
// what would be a hang or garbage into an error that names both.
//
// Which memory is meant is up to the implementation: host memory for ranks in one process, device
// memory with a stream for GPUs. Counts are elements; types and the meaning of "in place" are
// NCCL's.
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

// The part of a call that all ranks of the group must agree on.
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

// The queue that work on device memory is issued to; null for host memory.
struct Stream {
  void* handle = nullptr;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  // Every rank makes the same calls in the same order. With host memory a call returns when the
  // result is complete and `in` may be reused; with device memory when the work is queued.

  // out[i] = reduction of in[i] over all ranks. In place: out == in.
  base::Result<void> all_reduce(const void* in, void* out, std::int64_t count, Dtype type,
                                Reduction reduction, Stream stream = {}) {
    return run({Collective::kAllReduce, count, type, reduction}, in, out, stream);
  }
  // `in` has `count` elements for each rank; each rank receives the reduction of its own part. In
  // place: out == in + rank * count.
  base::Result<void> reduce_scatter(const void* in, void* out, std::int64_t count, Dtype type,
                                    Reduction reduction, Stream stream = {}) {
    return run({Collective::kReduceScatter, count, type, reduction}, in, out, stream);
  }
  // Concatenates the `count` elements of every rank, in rank order. In place: in == out + rank *
  // count.
  base::Result<void> all_gather(const void* in, void* out, std::int64_t count, Dtype type,
                                Stream stream = {}) {
    return run({Collective::kAllGather, count, type}, in, out, stream);
  }
  // Copies the root's elements to all ranks.
  base::Result<void> broadcast(void* data, std::int64_t count, Dtype type, int root,
                               Stream stream = {}) {
    return run({Collective::kBroadcast, count, type, Reduction::kSum, root}, data, data, stream);
  }
  // Sends `count` elements to each rank and receives as many from each. Not in place.
  base::Result<void> all_to_all(const void* in, void* out, std::int64_t count, Dtype type,
                                Stream stream = {}) {
    return run({Collective::kAllToAll, count, type}, in, out, stream);
  }
  base::Result<void> barrier() { return run({}, nullptr, nullptr, {}); }

  // Small values that all ranks must agree on before they act. Host memory only.
  base::Result<std::int64_t> broadcast_value(std::int64_t value, int root = 0);
  base::Result<bool> any_rank(bool condition);

  // Called by a rank that cannot continue: fails the calls of all ranks, waiting and future.
  virtual void abort(const base::Error& why) = 0;

 protected:
  virtual base::Result<void> run(const Call& call, const void* in, void* out, Stream stream) = 0;
};

}  // namespace assay::comm
