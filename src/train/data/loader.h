// Loader: the sequence of one rank's micro-batches, prefetched by a thread so that a step does not
// wait for disk reads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/result.h"
#include "train/data/batch_reader.h"

namespace assay::data {

struct LoaderOptions {
  BatchShare share;
  std::uint64_t cursor = 0;  // where to start: 0, or from a checkpoint
  std::size_t ahead = 4;     // number of batches to prefetch, at most; not 0
};

class Loader {
 public:
  // The reader's set must outlive the loader.
  Loader(const BatchReader& reader, const LoaderOptions& options);
  // Waits only for the batch that is being read.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the next micro-batch and recycles the memory of `batch`. A read error is returned in
  // place of the batch that failed, and by every later call. Not thread-safe.
  base::Result<void> next(Batch& batch);

 private:
  void fill(const std::stop_token& stop);

  const BatchReader reader_;
  const LoaderOptions options_;

  std::mutex mutex_;  // guards the members below
  // Only one side waits at a time: the thread when the queue is full, next() when it is empty.
  std::condition_variable_any changed_;
  std::deque<Batch> ready_;
  std::vector<Batch> spent_;
  std::optional<base::Error> error_;  // returned after the batches that are ready

  std::jthread thread_;  // last: uses all members above
};

}  // namespace assay::data
