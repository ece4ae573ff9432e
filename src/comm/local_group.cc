#include "comm/local_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace assay::comm {

LocalGroup::LocalGroup(int ranks, std::chrono::milliseconds timeout)
    : timeout_(timeout),
      posted_(static_cast<std::size_t>(ranks)),
      arrived_(static_cast<std::size_t>(ranks)),
      missing_(ranks) {}

std::optional<base::Error> LocalGroup::disagreement() const {
  for (int rank = 1; rank < ranks(); ++rank) {
    if (of(rank).call == of(0).call) continue;
    return base::failed_error(
        fmt::format("rank {}", rank),
        fmt::format("calls {} where rank 0 calls {}", to_text(of(rank).call), to_text(of(0).call)),
        "all ranks must run the same job");
  }
  return std::nullopt;
}

base::Error LocalGroup::timed_out(const Call& call) const {
  const auto rank = std::find(arrived_.begin(), arrived_.end(), false) - arrived_.begin();
  return base::failed_error(
      fmt::format("rank {}", rank),
      fmt::format("did not join {} within {} ms", to_text(call), timeout_.count()),
      "check whether that rank hangs");
}

base::Result<void> LocalGroup::begin(int rank, const PostedCall& posted) {
  std::unique_lock lock(mutex_);
  if (failure_) return base::fail(*failure_);
  posted_[static_cast<std::size_t>(rank)] = posted;
  arrived_[static_cast<std::size_t>(rank)] = true;
  const std::uint64_t call = begun_;
  if (--missing_ == 0) {
    failure_ = disagreement();
    if (!failure_) {
      ++begun_;
      busy_ = missing_ = ranks();
      arrived_.assign(arrived_.size(), false);
    }
    changed_.notify_all();
  } else {
    const bool in_time =
        changed_.wait_for(lock, timeout_, [&] { return begun_ != call || failure_.has_value(); });
    if (!in_time) {
      failure_ = timed_out(posted.call);
      changed_.notify_all();
    }
  }
  // A call that all ranks have posted completes, even if the group was aborted since.
  if (begun_ != call) return {};
  return base::fail(*failure_);
}

void LocalGroup::end() {
  std::unique_lock lock(mutex_);
  const std::uint64_t call = ended_;
  if (--busy_ == 0) {
    ++ended_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return ended_ != call; });
}

void LocalGroup::abort(base::Error why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
  changed_.notify_all();
}

}  // namespace assay::comm
