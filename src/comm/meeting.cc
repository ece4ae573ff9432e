#include "comm/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace assay::comm {

Meeting::Meeting(int ranks, std::chrono::milliseconds patience)
    : patience_(patience),
      brought_(static_cast<std::size_t>(ranks)),
      here_(static_cast<std::size_t>(ranks)),
      missing_(ranks) {}

std::optional<base::Error> Meeting::disagreement() const {
  for (int rank = 1; rank < ranks(); ++rank) {
    if (of(rank).call == of(0).call) continue;
    return base::failed_error(
        fmt::format("rank {}", rank),
        fmt::format("calls {} where rank 0 calls {}", to_text(of(rank).call), to_text(of(0).call)),
        "all ranks must run the same job");
  }
  return std::nullopt;
}

base::Error Meeting::stayed_away(const Call& call) const {
  const auto rank = std::find(here_.begin(), here_.end(), false) - here_.begin();
  return base::failed_error(
      fmt::format("rank {}", rank),
      fmt::format("did not come to {} within {} ms", to_text(call), patience_.count()),
      "see what held it up");
}

base::Result<void> Meeting::begin(int rank, const Brought& brought) {
  std::unique_lock lock(mutex_);
  if (failure_) return base::fail(*failure_);
  brought_[static_cast<std::size_t>(rank)] = brought;
  here_[static_cast<std::size_t>(rank)] = true;
  const std::uint64_t meeting = begun_;
  if (--missing_ == 0) {
    failure_ = disagreement();
    if (!failure_) {
      ++begun_;
      busy_ = missing_ = ranks();
      here_.assign(here_.size(), false);
    }
    changed_.notify_all();
  } else {
    const bool in_time = changed_.wait_for(
        lock, patience_, [&] { return begun_ != meeting || failure_.has_value(); });
    if (!in_time) {
      failure_ = stayed_away(brought.call);
      changed_.notify_all();
    }
  }
  // What has begun goes to its end, whatever happened since.
  if (begun_ != meeting) return {};
  return base::fail(*failure_);
}

void Meeting::end() {
  std::unique_lock lock(mutex_);
  const std::uint64_t meeting = ended_;
  if (--busy_ == 0) {
    ++ended_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return ended_ != meeting; });
}

void Meeting::abort(base::Error why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
  changed_.notify_all();
}

}  // namespace assay::comm
