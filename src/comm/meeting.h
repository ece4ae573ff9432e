// Meeting: where the ranks of one process wait for each other. Each comes with a call and memory;
// when all have come with the same call, the memory of all is open to all until the last is done.
// Nobody waits for ever: a rank that leaves, gives up or stays away ends the waiting of the others.
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

struct Brought {
  Call call;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

class Meeting {
 public:
  Meeting(int ranks, std::chrono::milliseconds patience);

  [[nodiscard]] int ranks() const { return static_cast<int>(brought_.size()); }
  // Until every rank has come. After an error, which stays for good, nothing may be touched.
  base::Result<void> begin(int rank, const Brought& brought);
  // What a rank brought; between begin and end.
  [[nodiscard]] const Brought& of(int rank) const {
    return brought_[static_cast<std::size_t>(rank)];
  }
  // Until nobody touches this rank's memory any more. That is not waiting for a rank's good will:
  // all are between begin and end, where there is nothing but copying.
  void end();
  // The first reason is the one that everybody is told.
  void abort(base::Error why);

 private:
  [[nodiscard]] std::optional<base::Error> disagreement() const;
  [[nodiscard]] base::Error stayed_away(const Call& call) const;

  const std::chrono::milliseconds patience_;
  std::vector<Brought> brought_;

  std::mutex mutex_;  // guards what follows, and brought_ until all are there
  std::condition_variable changed_;
  std::vector<bool> here_;
  int missing_;
  int busy_ = 0;             // between begin and end
  std::uint64_t begun_ = 0;  // meetings
  std::uint64_t ended_ = 0;  // likewise
  std::optional<base::Error> failure_;
};

}  // namespace assay::comm
