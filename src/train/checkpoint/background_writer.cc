#include "train/checkpoint/background_writer.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/shared_write.h"

namespace assay::checkpoint {

base::Result<std::unique_ptr<BackgroundWriter>> BackgroundWriter::start(
    const std::filesystem::path& root, BackgroundOptions options) try {
  if (options.owns_root) ASSAY_TRY_VOID(prepare_root(root));
  return std::unique_ptr<BackgroundWriter>(new BackgroundWriter(root, std::move(options)));
} catch (const std::exception& error) {
  // Thrown by the standard library when memory or threads run out.
  return base::fail(base::unfit_error(root.string(), error.what()));
}

BackgroundWriter::BackgroundWriter(std::filesystem::path root, BackgroundOptions options)
    : root_(std::move(root)), options_(std::move(options)) {
  options_.write.stop = stop_.get_token();
  thread_ = std::thread([this] { work(); });
}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.request_stop();
  changed_.notify_all();
  thread_.join();
  if (error_) base::log_error("a checkpoint was not written", {{"error", error_->line()}});
}

base::Result<void> BackgroundWriter::submit(Snapshot snapshot, Done done) {
  std::unique_lock lock(mutex_);
  if (options_.when_busy == WhenBusy::kRefuse && (next_ || writing_)) {
    return base::fail(base::failed_error(root_.string(), "a checkpoint is still being written",
                                         "save less often, or wait for it"));
  }
  changed_.wait(lock, [this] { return !next_ && !writing_; });
  ASSAY_TRY_VOID(take_error());
  next_ = Request{std::move(snapshot), std::move(done)};
  changed_.notify_all();
  return {};
}

base::Result<void> BackgroundWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !next_ && !writing_; });
  return take_error();
}

bool BackgroundWriter::busy() const {
  const std::lock_guard lock(mutex_);
  return next_ || writing_;
}

bool BackgroundWriter::idle_within(std::chrono::milliseconds time) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return !next_ && !writing_; });
}

base::Result<void> BackgroundWriter::take_error() {
  if (!error_) return {};
  return base::fail(*std::exchange(error_, std::nullopt));
}

void BackgroundWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next_; });
    if (!next_) return;
    std::optional<Request> request = std::exchange(next_, std::nullopt);
    writing_ = true;
    lock.unlock();
    std::optional<base::Error> error;
    const base::Result<Written> written =
        request->snapshot.share ? write_shared(root_, request->snapshot, options_.write)
                                : write_checkpoint(root_, request->snapshot, options_.write);
    if (!written) error = written.error();
    if (request->done) request->done(written);
    request.reset();  // frees its memory before the next snapshot arrives
    if (written && options_.owns_root) {
      // Checkpoints that had readers when they were due for removal may have none now.
      const auto swept = sweep(root_);
      if (!swept) error = swept.error();
      const auto pruned = prune(root_, options_.retention);
      if (!pruned) error = pruned.error();
    }
    lock.lock();
    error_ = std::move(error);
    writing_ = false;
    changed_.notify_all();
  }
}

}  // namespace assay::checkpoint
