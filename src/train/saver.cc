#include "train/saver.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/error.h"

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

// Until no rank's writer is busy, without an exchange that takes longer than a moment: ranks wait
// for each other's disks only as long as they make progress (checkpoint::WriteOptions).
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
  if (const auto written = writer_->wait(); !written) {
    reporter_.note("a checkpoint was not written: " + written.error().line());
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
  AgreedShare agreed;
  if (ranks_.ranks() > 1) {
    ASSAY_TRY(agreed, agree_on_share(ranks_, options_.root, position.step));
    if (!agreed.share) return submit_failure(agreed.failure);
  }
  ASSAY_TRY(checkpoint::Snapshot snapshot, take_snapshot(backend, program, job_, position));
  snapshot.share = std::move(agreed.share);
  return writer_->submit(std::move(snapshot),
                         [this](const base::Result<checkpoint::Written>& written) {
                           if (!written || ranks_.rank() != 0) return;
                           reporter_.saved(written->folder, written->bytes);
                         });
}

// As if writing had failed: reported with the next checkpoint, or at the end.
base::Result<void> Saver::submit_failure(const std::optional<base::Error>& failure) {
  if (!failure) return {};
  checkpoint::Snapshot none;
  none.ready = [error = *failure]() -> base::Result<void> { return base::fail(error); };
  return writer_->submit(std::move(none));
}

base::Result<void> Saver::finish() {
  ASSAY_TRY_VOID(wait_for_writers());
  return writer_->wait();
}

}  // namespace assay::train
