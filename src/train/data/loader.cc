#include "train/data/loader.h"

#include <utility>

#include "base/check.h"
#include "hash/mapped_file.h"

namespace assay::data {

Loader::Loader(const BatchReader& reader, const LoaderOptions& options)
    : reader_(reader), options_(options) {
  ASSAY_CHECK(options.ahead > 0, "a loader reads at least one batch ahead");
  thread_ = std::jthread([this](const std::stop_token& stop) { fill(stop); });
}

Loader::~Loader() = default;  // jthread requests the stop, which wakes the thread, and joins it

void Loader::fill(const std::stop_token& stop) {
  const hash::SigbusUnblocked unblocked;
  std::uint64_t cursor = options_.cursor;
  while (true) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      const bool has_space =
          changed_.wait(lock, stop, [this] { return ready_.size() < options_.ahead; });
      if (!has_space || stop.stop_requested()) return;
      if (!spent_.empty()) {
        batch = std::move(spent_.back());
        spent_.pop_back();
      }
    }
    const auto outcome = reader_.read(cursor, options_.share, batch);
    cursor += options_.share.stride();
    bool awaited = true;
    {
      const std::lock_guard lock(mutex_);
      awaited = ready_.empty();
      if (outcome) {
        ready_.push_back(std::move(batch));
      } else {
        error_ = outcome.error();
      }
    }
    if (awaited) changed_.notify_one();
    if (!outcome) return;
  }
}

base::Result<void> Loader::next(Batch& batch) {
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || error_; });
    if (ready_.empty()) return base::fail(*error_);
    spent_.push_back(std::move(batch));
    batch = std::move(ready_.front());
    ready_.pop_front();
    // Woken when half of the batches are gone, the thread makes several at a time.
    wake = ready_.size() <= options_.ahead / 2;
  }
  if (wake) changed_.notify_one();
  return {};
}

}  // namespace assay::data
