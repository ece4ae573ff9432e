#include "train/checkpoint/background_writer.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "train/checkpoint/checkpoint.h"
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

std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps,
                                          Retention retention) {
  std::vector<std::int64_t> removed;
  if (retention.keep_last <= 0) return removed;
  const auto count = static_cast<std::int64_t>(steps.size());
  for (std::int64_t i = 0; i < count - retention.keep_last; ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    if (retention.keep_every <= 0 || step % retention.keep_every != 0) removed.push_back(step);
  }
  return removed;
}

base::Result<Pruned> prune(const std::filesystem::path& root, Retention retention) {
  Pruned pruned;
  if (retention.keep_last <= 0) return pruned;
  std::vector<std::int64_t> steps;
  {
    ASSAY_TRY(const std::vector<Listed> all, list(root));
    for (const Listed& one : all) {
      if (one.manifest) steps.push_back(one.step);
    }
  }
  for (const std::int64_t step : steps_to_remove(steps, retention)) {
    ASSAY_TRY(const bool removed, remove_folder(root, step_name(step), step));
    (removed ? pruned.removed : pruned.in_use).push_back(step);
  }
  return pruned;
}

}  // namespace assay::checkpoint
