// BackgroundWriter: writes checkpoints on its own thread while training continues.
//
//   ASSAY_TRY(auto writer, BackgroundWriter::start(root, {.retention = {.keep_last = 3}}));
//   …  ASSAY_TRY_VOID(writer->submit(std::move(snapshot), [](const auto& outcome) { … }));
//   …  ASSAY_TRY_VOID(writer->wait());
//
// One checkpoint is in flight at a time. If a write fails, the next call of any method returns the
// error; if there is no further call, it is logged. A snapshot with a RankOfWrite is this rank's
// part of a checkpoint (shared_write.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint {

// Which checkpoints are kept: the last K, and those whose step is a multiple of M.
struct Retention {
  std::int64_t keep_last = 0;   // 0: all
  std::int64_t keep_every = 0;  // steps; 0: none besides the last
};

// The steps to remove, of steps in ascending order.
std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps, Retention retention);

struct Pruned {
  std::vector<std::int64_t> removed;
  std::vector<std::int64_t> in_use;  // due for removal but being read; a later call removes them
};
// Damaged checkpoints are neither counted nor removed: counting them would cause intact ones to be
// removed, and users should be able to examine them.
base::Result<Pruned> prune(const std::filesystem::path& root, Retention retention);

enum class WhenBusy {
  kWait,    // until the write in flight has finished
  kRefuse,  // with an error; the caller may try again later
};

struct BackgroundOptions {
  WriteOptions write = {};
  Retention retention = {};  // applied after every checkpoint
  WhenBusy when_busy = WhenBusy::kWait;
  // Whether this writer prepares, cleans and prunes the root; with several ranks, only rank 0's
  // does.
  bool owns_root = true;
};

class BackgroundWriter {
 public:
  // Called on the writer's thread once per accepted snapshot, when its memory may be reused: the
  // checkpoint is committed or has failed. Must not throw or call the writer.
  using Done = std::function<void(const base::Result<Written>&)>;

  // Prepares the root if it owns it.
  static base::Result<std::unique_ptr<BackgroundWriter>> start(const std::filesystem::path& root,
                                                               BackgroundOptions options = {});
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;
  // Waits for the write in flight, but only briefly for other ranks.
  ~BackgroundWriter();

  // On an error (of the previous checkpoint, or busy) this snapshot was not accepted and `done` is
  // not called.
  base::Result<void> submit(Snapshot snapshot, Done done = {});
  // Waits until nothing is in flight.
  base::Result<void> wait();
  [[nodiscard]] bool busy() const;
  // Waits at most `time`; returns whether nothing is in flight.
  [[nodiscard]] bool idle_within(std::chrono::milliseconds time) const;

 private:
  struct Request {
    Snapshot snapshot;
    Done done;
  };

  BackgroundWriter(std::filesystem::path root, BackgroundOptions options);
  void work();
  base::Result<void> take_error();

  const std::filesystem::path root_;
  BackgroundOptions options_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Request> next_;  // accepted, not started
  bool writing_ = false;
  bool stopping_ = false;
  std::optional<base::Error> error_;
  std::thread thread_;
};

}  // namespace assay::checkpoint
