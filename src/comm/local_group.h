// LocalGroup: what the ranks of one process share. Each rank posts a call and its buffers; once all
// have posted the same call, every rank may read and write all posted buffers until the last rank
// is done. Waiting is bounded: a rank that is destroyed, aborts or does not arrive in time fails
// the calls of all others.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/communicator.h"

namespace assay::comm {

struct PostedCall {
  Call call;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

class LocalGroup {
 public:
  LocalGroup(int ranks, std::chrono::milliseconds timeout);

  [[nodiscard]] int ranks() const { return static_cast<int>(posted_.size()); }
  // Blocks until every rank has posted. An error is permanent; after one, no buffer may be touched.
  base::Result<void> begin(int rank, const PostedCall& posted);
  // What a rank posted; valid between begin and end.
  [[nodiscard]] const PostedCall& of(int rank) const {
    return posted_[static_cast<std::size_t>(rank)];
  }
  // Blocks until no rank uses this rank's buffers any more. Needs no timeout: between begin and end
  // ranks only copy memory.
  void end();
  // Fails all calls, waiting and future, with the first reason given.
  void abort(base::Error why);

 private:
  [[nodiscard]] std::optional<base::Error> disagreement() const;
  [[nodiscard]] base::Error timed_out(const Call& call) const;

  const std::chrono::milliseconds timeout_;
  std::vector<PostedCall> posted_;

  std::mutex mutex_;  // guards the members below, and posted_ until all ranks have posted
  std::condition_variable changed_;
  std::vector<bool> arrived_;
  int missing_;
  int busy_ = 0;             // ranks between begin and end
  std::uint64_t begun_ = 0;  // calls that all ranks have posted
  std::uint64_t ended_ = 0;  // calls that all ranks have completed
  std::optional<base::Error> failure_;
};

}  // namespace assay::comm
