// Parallel hashing of one input: it is cut into segments, each a full subtree of 1 MiB or more;
// threads take the next segment until none is left; the segments' values are joined at the end. So
// the digest does not depend on scheduling, and memory use does not depend on the input's length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "base/result.h"
#include "hash/digest.h"
#include "hash/tree.h"

namespace assay::hash {

// The input. Called from several threads at once.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Adds the bytes from `offset` on to the subtree and returns how many there were: `length`, or
  // fewer if the input ends early.
  virtual base::Result<std::size_t> feed(Subtree& subtree, std::uint64_t offset,
                                         std::size_t length) const = 0;
};

struct SegmentOptions {
  unsigned threads = 0;  // 0: as many as this process may use
  const Kernel* kernel = &best_kernel();
  std::function<void(std::int64_t)> progress;  // see HashOptions
  std::stop_token stop;
};

struct Hashed {
  Digest digest;
  std::uint64_t bytes = 0;
};

// Hashes the first `size` bytes of the source, or all up to the first segment that was short.
// Errors are the source's, or just "stopped".
base::Result<Hashed> hash_segments(const SegmentSource& source, std::uint64_t size,
                                   const SegmentOptions& options);

// The number of processors in this process's affinity mask; CPU quotas of control groups are not
// considered.
unsigned usable_threads();

}  // namespace assay::hash
