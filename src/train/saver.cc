#include "train/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/folders.h"
#include "base/units.h"
#include "train/checkpoint/folder_name.h"
#include "train/finite_tensors.h"
#include "train/state.h"

namespace assay::train {

Saver::Saver(const spec::JobSpec& job, SaverOptions options, comm::Communicator& ranks,
             Reporter& reporter)
    : job_(job), options_(std::move(options)), ranks_(ranks), reporter_(reporter) {}

base::Result<void> Saver::open() {
  const bool first = ranks_.rank() == 0;
  std::error_code error;
  if (!first && !std::filesystem::is_directory(options_.root, error)) {
    return base::fail(
        base::unfit_error(options_.root.string(),
                          fmt::format("rank {} does not see the folder of rank 0", ranks_.rank()),
                          "all ranks must share the file system of --out"));
  }
  ASSAY_TRY(writer_, checkpoint::BackgroundWriter::start(
                         options_.root,
                         {.retention = {.keep_last = job_.checkpoint.keep}, .owns_root = first}));
  return {};
}

// Waits until no rank's writer is busy, using only short exchanges: ranks wait for each other's
// disks as long as those make progress (checkpoint::WriteOptions).
base::Result<void> Saver::wait_for_writers() {
  while (true) {
    const bool idle = writer_->idle_within(std::chrono::seconds(1));
    ASSAY_TRY(const bool busy, ranks_.any_rank(!idle));
    if (!busy) return {};
  }
}

// The next snapshot reuses the memory of the previous one.
base::Result<void> Saver::finish_previous(std::int64_t step) {
  const std::int64_t start_ns = options_.clock->monotonic_ns();
  ASSAY_TRY_VOID(wait_for_writers());
  const std::int64_t failures = failures_;
  if (const auto written = writer_->wait(); !written && failures == 0) {
    reporter_.note("old checkpoints were not removed: " + written.error().line());
  }
  constexpr std::int64_t kLong_ns = 1'000'000'000;
  const bool waited_long = options_.clock->monotonic_ns() - start_ns > kLong_ns;
  if (waited_long && step < options_.steps && !std::exchange(warned_of_waiting_, true)) {
    reporter_.note("training waits for checkpoint writes: raise checkpoint.every");
  }
  return {};
}

base::Result<void> Saver::save(Backend& backend, const step::Program& program,
                               const Position& position) {
  ASSAY_TRY_VOID(finish_previous(position.step));
  warn_of_full_disk();
  AgreedShare agreed;
  if (ranks_.ranks() > 1) {
    ASSAY_TRY(agreed, agree_on_share(ranks_, options_.root, position.step));
    if (!agreed.share) return submit_failure(position.step, agreed.failure);
  }
  ASSAY_TRY(const std::string algorithms, all_algorithms(ranks_, backend.algorithms()));
  base::Result<checkpoint::Snapshot> snapshot = take_snapshot(backend, program, job_, position);
  ASSAY_TRY(const bool incomplete, ranks_.any_rank(!snapshot));
  if (incomplete) return give_up(position.step, snapshot);
  if (!algorithms.empty()) snapshot->state.extra["algorithms"] = algorithms;
  // On the writer's thread, where training does not wait for it. Views of the same memory.
  snapshot->ready = [copied = std::move(snapshot->ready),
                     parts = snapshot->parts]() -> base::Result<void> {
    if (copied) ASSAY_TRY_VOID(copied());
    return check_finite(parts);
  };
  if (!options_.data.is_null()) snapshot->state.extra["data"] = options_.data;
  add_tokenizer(options_.tokenizer, *snapshot);
  snapshot->share = std::move(agreed.share);
  return writer_->submit(*std::move(snapshot), [this, step = position.step](const auto& written) {
    saved(step, written);
  });
}

// A rank could not copy its state, for lack of host memory: nothing is written.
base::Result<void> Saver::give_up(std::int64_t step,
                                  const base::Result<checkpoint::Snapshot>& snapshot) {
  if (!snapshot) return submit_failure(step, snapshot.error());
  // The memory is reused as soon as this returns. A device error will be reported by the next step.
  if (snapshot->ready) std::ignore = snapshot->ready();
  if (ranks_.rank() != 0) return {};
  return submit_failure(step, base::failed_error("other ranks", "cannot copy their state",
                                                 "see the logs of these ranks"));
}

// Called on the writer's thread.
void Saver::saved(std::int64_t step, const base::Result<checkpoint::Written>& written) {
  if (written) {
    failures_ = 0;
    if (ranks_.rank() == 0) reporter_.saved(written->folder, written->bytes);
    return;
  }
  failed_ns_ = options_.clock->monotonic_ns();
  failures_ += 1;
  reporter_.note(
      fmt::format("THE CHECKPOINT OF STEP {} WAS NOT WRITTEN, and will be tried again: {}", step,
                  written.error().line()));
}

bool Saver::retry_due() const {
  const std::int64_t failures = failures_;
  if (failures == 0 || writer_->busy()) return false;  // the one being written may succeed
  // Retries at once, then after 1, 2, 4 … seconds.
  constexpr std::int64_t kMost_ns = 60'000'000'000;
  const std::int64_t pause_ns =
      failures == 1 ? 0
                    : std::min(kMost_ns, std::int64_t{1'000'000'000}
                                             << std::min<std::int64_t>(failures - 2, 6));
  return options_.clock->monotonic_ns() - failed_ns_ >= pause_ns;
}

base::Result<void> Saver::check_disk(const step::Program& program, std::int64_t first_step,
                                     std::int64_t last_step) {
  const std::int64_t own = saved_bytes(program);
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks_.ranks()), own);
  if (ranks_.ranks() > 1) {
    ASSAY_TRY_VOID(ranks_.all_gather(&own, all.data(), sizeof own, comm::ElementType::kU8));
  }
  checkpoint_bytes_ = std::accumulate(all.begin(), all.end(), std::int64_t{0});
  if (ranks_.rank() != 0 || first_step > last_step) return {};
  // Counts the multiples before the last step, which is saved in any case.
  const std::int64_t every = job_.checkpoint.every.value_or(last_step);
  const std::int64_t regular = (last_step - 1) / every - (first_step - 1) / every;
  ASSAY_TRY(const std::vector<std::int64_t> existing, checkpoint::steps_in(options_.root));
  ASSAY_TRY(const base::Bytes free, base::free_space(options_.root));
  ASSAY_TRY(const std::string warning,
            check_disk_space(options_.root, free,
                             {.bytes = checkpoint_bytes_,
                              .count = regular + 1,
                              .keep = job_.checkpoint.keep,
                              .existing = static_cast<std::int64_t>(existing.size())}));
  if (!warning.empty()) reporter_.note(warning);
  return {};
}

// Checked again because other programs may fill the disk meanwhile.
void Saver::warn_of_full_disk() {
  if (ranks_.rank() != 0) return;
  const auto free = base::free_space(options_.root);
  const bool full = free && free->count() < checkpoint_bytes_;
  if (full && !warned_of_disk_) {
    reporter_.note(fmt::format("THE DISK IS FULL: {} has {} free, and a checkpoint takes {}",
                               options_.root.string(), base::to_text(*free),
                               base::to_text(base::Bytes(checkpoint_bytes_))));
  }
  warned_of_disk_ = full;
}

// Treated like a failed write: reported with the next checkpoint, or at the end.
base::Result<void> Saver::submit_failure(std::int64_t step,
                                         const std::optional<base::Error>& failure) {
  if (!failure) return {};
  checkpoint::Snapshot none;
  none.ready = [error = *failure]() -> base::Result<void> { return base::fail(error); };
  return writer_->submit(std::move(none),
                         [this, step](const auto& written) { saved(step, written); });
}

base::Result<void> Saver::finish() {
  ASSAY_TRY_VOID(wait_for_writers());
  auto written = writer_->wait();
  if (written || failures_ > 0) return written;
  reporter_.note("old checkpoints were not removed: " + written.error().line());
  return {};
}

std::int64_t FutureCheckpoints::at_once() const {
  if (keep == 0) return count;
  return std::min(count, std::max<std::int64_t>(1, keep + 1 - existing));
}

base::Result<std::string> check_disk_space(const std::filesystem::path& folder, base::Bytes free,
                                           const FutureCheckpoints& future) {
  const std::int64_t fit = future.bytes > 0 ? free.count() / future.bytes : future.at_once();
  if (fit >= future.at_once()) return std::string();
  const std::string each = base::to_text(base::Bytes(future.bytes));
  if (future.keep == 0 && fit > 0) {
    return fmt::format(
        "{} has room for {} of the {} checkpoints to come, of {} each: move some "
        "away in time, or set checkpoint.keep",
        folder.string(), fit, future.at_once(), each);
  }
  return base::fail(base::unfit_error(
      folder,
      fmt::format("has {} free, but needs room for {} checkpoint{} of {}{}", base::to_text(free),
                  future.at_once(), future.at_once() == 1 ? "" : "s", each,
                  future.at_once() == 1 ? "" : " at a time"),
      "free some, lower checkpoint.keep, or name another disk with --out"));
}

}  // namespace assay::train
