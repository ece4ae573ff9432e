// BackgroundWriter: writes checkpoints on a thread of its own while training goes on.
//
//   ASSAY_TRY(auto writer, BackgroundWriter::start(root, {.retention = {.keep_last = 3}}));
//   …  ASSAY_TRY_VOID(writer->submit(std::move(snapshot), [](const auto& outcome) { … }));
//   …  ASSAY_TRY_VOID(writer->wait());
//
// One checkpoint is in flight at a time. What went wrong with one is told by the next call,
// whatever it is; if none comes, it is logged.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/result.h"
#include "train/checkpoint/retention.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint {

enum class WhenBusy {
  kWait,    // until the one in flight is done
  kRefuse,  // with an error; training goes on and tries again later
};

struct BackgroundOptions {
  WriteOptions write = {};
  Retention retention = {};  // applied after every checkpoint
  WhenBusy when_busy = WhenBusy::kWait;
};

class BackgroundWriter {
 public:
  // Called on the writer's thread, once per accepted snapshot, when its memory is needed no more:
  // the checkpoint stands, or it failed. Must not throw, and must not call the writer.
  using Done = std::function<void(const base::Result<Written>&)>;

  // Prepares the root.
  static base::Result<std::unique_ptr<BackgroundWriter>> start(const std::filesystem::path& root,
                                                               BackgroundOptions options = {});
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;
  // Waits for the one in flight.
  ~BackgroundWriter();

  // An error, the previous checkpoint's or that the writer is busy, means that this snapshot was
  // not taken and `done` will not be called.
  base::Result<void> submit(Snapshot snapshot, Done done = {});
  // Until nothing is in flight.
  base::Result<void> wait();
  [[nodiscard]] bool busy() const;

 private:
  struct Job {
    Snapshot snapshot;
    Done done;
  };

  BackgroundWriter(std::filesystem::path root, BackgroundOptions options);
  void work();
  base::Result<void> take_error();

  const std::filesystem::path root_;
  const BackgroundOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> next_;  // accepted, not begun
  bool writing_ = false;
  bool stopping_ = false;
  std::optional<base::Error> error_;
  std::thread thread_;
};

}  // namespace assay::checkpoint
