// Loader: one rank's micro-batches, one after the other, read ahead by a thread of its own so that
// a step never waits for a page of a shard.
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
  RankPlace place;
  std::uint64_t cursor = 0;  // where to begin: 0, or where a checkpoint stood
  std::size_t ahead = 4;     // batches that are ready at most; not 0
};

class Loader {
 public:
  // The reader's set must outlive the loader.
  Loader(const BatchReader& reader, const LoaderOptions& options);
  // Waits for the batch that is being read, no longer.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // By one thread. The next micro-batch, in exchange for the memory of the one that `batch` held.
  // An error comes in the place of the batch that could not be read, and again at every later call.
  base::Result<void> next(Batch& batch);

 private:
  void fill(const std::stop_token& stop);

  const BatchReader reader_;
  const LoaderOptions options_;

  std::mutex mutex_;  // guards what follows
  // Only one side ever waits: the thread when all is ready, next() when nothing is.
  std::condition_variable_any changed_;
  std::deque<Batch> ready_;
  std::vector<Batch> spent_;
  std::optional<base::Error> error_;  // follows the batches that are ready

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace assay::data
